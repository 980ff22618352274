package seal

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

func sealed(t testing.TB, data []byte, keys Keys) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, keys)
	if err != nil {
		t.Fatal(err)
	}
	for rest := data; len(rest) > 0; { // in writes of odd sizes
		n := min(len(rest), 7777)
		if _, err := w.Write(rest[:n]); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func opened(file []byte, keys Keys) ([]byte, error) {
	r, err := NewReader(bytes.NewReader(file), keys)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

var (
	first  = Key{1}
	second = Key{2}
)

func TestWhatWasSealedIsGivenBack(t *testing.T) {
	for _, size := range []int{0, 1, frameSize - 1, frameSize, frameSize + 1, 3*frameSize + 5} {
		data := bytes.Repeat([]byte("abc"), size/3+1)[:size]
		file := sealed(t, data, Keys{first, second})
		for _, keys := range []Keys{{second}, {first, second}, {second, first}} {
			if got, err := opened(file, keys); err != nil || !bytes.Equal(got, data) {
				t.Errorf("%d bytes: %d come back, %v", size, len(got), err)
			}
		}
		if got, err := opened(file, Keys{first}); !errors.Is(err, ErrKey) || len(got) > 0 {
			t.Errorf("without the last key: %v", err)
		}
		r, err := Unproved(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, data) || r.KeyID() != second.ID() {
			t.Errorf("%d bytes without a key: %d come back, %v", size, len(got), err)
		}
	}
	if _, err := NewWriter(io.Discard, nil); !errors.Is(err, ErrNoKey) {
		t.Errorf("sealed without a key: %v", err)
	}
}

// No byte of what was changed is given out: only frames that stand before the change are.
func TestNothingOfAChangedFrameIsGivenOut(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789"), frameSize/4)
	file := sealed(t, data, Keys{first})
	for at := 0; at < len(file); at += 1 + at/50 {
		changed := bytes.Clone(file)
		changed[at] ^= 4
		got, err := opened(changed, Keys{first})
		if !errors.Is(err, ErrChanged) && !errors.Is(err, ErrKey) && !errors.Is(err, ErrUnsealed) {
			t.Fatalf("byte %d: %v", at, err)
		}
		if !bytes.HasPrefix(data, got) || len(got)%frameSize != 0 || len(got) > at {
			t.Fatalf("byte %d: %d bytes were given out", at, len(got))
		}
		if _, err := opened(file[:at], Keys{first}); !errors.Is(err, ErrChanged) && !errors.Is(err, ErrUnsealed) {
			t.Fatalf("cut at %d: %v", at, err)
		}
	}
	if _, err := opened(append(bytes.Clone(file), 0), Keys{first}); !errors.Is(err, ErrChanged) {
		t.Errorf("something follows: %v", err)
	}
}

func TestFramesStayInTheirPlaceAndFile(t *testing.T) {
	data := bytes.Repeat([]byte("x"), 4*frameSize)
	file, other := sealed(t, data, Keys{first}), sealed(t, data, Keys{first})
	frame := func(of []byte, i int) []byte {
		from := headSize + i*(frameHead+frameSize)
		return of[from : from+frameHead+frameSize]
	}
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	for name, forged := range map[string][]byte{
		"swapped":       join(file[:headSize], frame(file, 1), frame(file, 0), frame(file, 2), frame(file, 3)),
		"left out":      join(file[:headSize], frame(file, 0), frame(file, 2), frame(file, 3)),
		"repeated":      join(file[:headSize], frame(file, 0), frame(file, 0), frame(file, 1), frame(file, 2), frame(file, 3)),
		"of another":    join(file[:headSize], frame(other, 0), frame(file, 1), frame(file, 2), frame(file, 3)),
		"without end":   join(file[:headSize], frame(file, 0), frame(file, 1), frame(file, 2)),
		"another head":  join(other[:headSize], file[headSize:]),
		"two in one":    join(file, file),
		"a false end":   join(file[:headSize], []byte{1}, frame(file, 0)[1:]),
		"a long length": join(file[:headSize], []byte{0, 0xff, 0xff, 0xff, 0xff}, frame(file, 0)[5:]),
	} {
		if _, err := opened(forged, Keys{first}); !errors.Is(err, ErrChanged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whatever a file holds, reading it ends with a verdict, and nothing that was not sealed is given out.
func FuzzReader(f *testing.F) {
	const state = "a state"
	good := sealed(f, []byte(state), Keys{first})
	f.Add(good)
	f.Add(good[:len(good)-3])
	f.Add([]byte("berthfsm"))
	f.Add(sealed(f, nil, Keys{second}))
	f.Fuzz(func(t *testing.T, file []byte) {
		got, err := opened(file, Keys{first})
		if err == nil && string(got) != state { // another process of the fuzzer has sealed it too, and not to the same bytes
			t.Errorf("%q was given out, which nobody sealed", got)
		}
		if r, err := Unproved(bytes.NewReader(file)); err == nil {
			_, _ = io.Copy(io.Discard, r) // it ends
		}
	})
}
