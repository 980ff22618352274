package packing

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const most = 4 << 20

// What was packed with these words is unpacked with them for ever. Whoever changes them has to make another format, with a feature
// level of its own.
func TestTheWordsStayAsTheyAre(t *testing.T) {
	const sum = "ec919e01f3c71ed67cf0de1f52dec1db9f6b4eac90a0de0156485ba503f6fd8e"
	if got := sha256.Sum256([]byte(words)); hex.EncodeToString(got[:]) != sum {
		t.Errorf("their sum is %x", got)
	}
	if len(words) > 32<<10 {
		t.Errorf("they have %d bytes, DEFLATE looks back 32 KiB", len(words))
	}
}

func TestWhatIsPackedIsUnpacked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		noise := rapid.SliceOfN(rapid.Byte(), 0, 2000).Draw(t, "noise")
		from, length := rapid.IntRange(0, len(words)).Draw(t, "from"), rapid.IntRange(0, 5000).Draw(t, "length")
		plain := append([]byte{1}, words[from:min(from+length, len(words))]...)
		for range rapid.IntRange(1, 20).Draw(t, "times") {
			plain = append(plain, noise...)
		}
		packed := Pack(plain)
		if len(packed) > len(plain) {
			t.Fatalf("%d bytes have become %d", len(plain), len(packed))
		}
		if got, err := Unpack(packed, len(plain)); err != nil || !bytes.Equal(got, plain) {
			t.Fatalf("%d bytes came back, %v", len(got), err)
		}
	})
}

func TestWhatDoesNotBecomeSmallerStaysAsItIs(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	noise := []byte{1}
	for range 5000 {
		noise = append(noise, byte(random.Uint32()))
	}
	for _, plain := range [][]byte{{}, {1}, noise} {
		if packed := Pack(plain); !bytes.Equal(packed, plain) {
			t.Errorf("%d bytes have become %d", len(plain), len(packed))
		}
		if got, err := Unpack(plain, 0); err != nil || !bytes.Equal(got, plain) {
			t.Errorf("what is not packed: %v, %v", got, err)
		}
	}
	if text := strings.Repeat("what is said twice ", 9); len(Pack([]byte(text))) > len(text)/2 {
		t.Error("a text of many repetitions is not packed")
	}
}

func packedAs(t testing.TB, length uint32, content []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	out.Write(binary.BigEndian.AppendUint32([]byte{Format}, length))
	w, err := flate.NewWriterDict(&out, 9, []byte(words))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestWhatIsDamagedIsRefused(t *testing.T) {
	plain := []byte(strings.Repeat(`{"key":"start vm"}`, 20))
	good := packedAs(t, uint32(len(plain)), plain)
	if got, err := Unpack(good, most); err != nil || !bytes.Equal(got, plain) {
		t.Fatal(err)
	}
	zeros := make([]byte, most+1)
	for name, bad := range map[string][]byte{
		"no length": good[:3], "nothing behind the length": good[:head], "cut": good[:len(good)-3],
		"something behind":  append(bytes.Clone(good), 0),
		"more than it says": packedAs(t, uint32(len(plain))-1, plain), "less than it says": packedAs(t, uint32(len(plain))+1, plain),
		"a bomb": packedAs(t, uint32(len(zeros)), zeros), "a bomb that lies": packedAs(t, 100, zeros),
		"the largest length": packedAs(t, 1<<32-1, plain), "a length of more than there can be": packedAs(t, most, plain),
	} {
		if got, err := Unpack(bad, most); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %d bytes (%v)", name, len(got), err)
		}
	}
}

// What a bomb takes before it is refused is no more than what may be, and one that is small takes little.
func TestABombTakesNoMemory(t *testing.T) {
	for name, c := range map[string]struct {
		bomb  []byte
		takes int64
	}{
		"of 64 MiB": {packedAs(t, most, make([]byte, 16*most)), most + most/4}, "of a few bytes": {packedAs(t, most, []byte("boom")), 64 << 10},
	} {
		took := testing.Benchmark(func(b *testing.B) {
			for range b.N {
				if _, err := Unpack(c.bomb, most); !errors.Is(err, ErrDamaged) {
					b.Fatal(err)
				}
			}
		}).AllocedBytesPerOp()
		if took > c.takes {
			t.Errorf("a bomb %s takes %d bytes, at most %d may be", name, took, c.takes)
		}
	}
}

// Whatever comes is refused or unpacked, and what is unpacked can be packed again.
func FuzzUnpack(f *testing.F) {
	f.Add(packedAs(f, 4, []byte("boom")))
	f.Add(packedAs(f, 3, []byte("boom")))
	f.Fuzz(func(t *testing.T, data []byte) {
		plain, err := Unpack(data, 1<<16)
		if err != nil || len(plain) > 0 && plain[0] == Format {
			return
		}
		if len(data) > 0 && data[0] == Format && len(plain) > 1<<16 {
			t.Fatalf("%d bytes", len(plain))
		}
		if again, err := Unpack(Pack(plain), max(len(plain), 1)); err != nil || !bytes.Equal(again, plain) {
			t.Fatal(err)
		}
	})
}
