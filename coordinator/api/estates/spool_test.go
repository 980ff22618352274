package estates

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"berth/shared/rpc"
	"berth/shared/units"
)

func TestTheSpoolKeepsRoomFree(t *testing.T) {
	s := newSpool(t.TempDir())
	free := 100 * units.GiB
	s.look = func(string) (units.Bytes, units.Bytes, error) { return free, units.TiB, nil }
	first, err := s.open(60 * units.GiB)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.open(39 * units.GiB); rpc.Detail(err).GetCode() != rpc.Unavailable || !strings.Contains(
		err.Error(), "60 GiB are for other imports",
	) {
		t.Errorf("two that do not fit together: %v", err)
	}
	if _, err := first.Write(make([]byte, units.MiB)); err != nil {
		t.Fatal(err)
	}
	free -= units.MiB
	second, err := s.open(38 * units.GiB)
	if err != nil {
		t.Errorf("what was written counts twice: %v", err)
	}
	second.close()
	first.close()
	if s.promised != 0 {
		t.Errorf("%s are still promised", s.promised)
	}
	if small := newSpool(t.TempDir()); true {
		small.look = func(string) (units.Bytes, units.Bytes, error) { return 7 * units.GiB, 8 * units.GiB, nil }
		if _, err := small.open(6*units.GiB + 1); err == nil {
			t.Error("a small file system was filled up")
		}
		if file, err := small.open(6 * units.GiB); err != nil {
			t.Errorf("a small file system takes nothing: %v", err)
		} else {
			file.close()
		}
	}
}

func TestASpooledFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/import-1", []byte("of a crash"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newSpool(dir)
	s.look = func(string) (units.Bytes, units.Bytes, error) { return units.TiB, units.TiB, nil }
	file, err := s.open(10)
	if err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("a crash now would leave %v", left)
	}
	if _, err := file.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, err := file.checksum(); !errors.Is(err, errTooShort) {
		t.Errorf("half a file: %v", err)
	}
	if _, err := file.Write([]byte("world!")); !errors.Is(err, errTooLong) {
		t.Errorf("more than the file: %v", err)
	}
	if _, err := file.Write([]byte("world")); err != nil {
		t.Fatal(err)
	}
	if sum, err := file.checksum(); err != nil || sum != "936a185caaa266bb9cbe981e9e05cb78cd732b0b3280eb944412bb6f8f8f07af" {
		t.Errorf("sum %s, %v", sum, err)
	}
	one, _ := file.reader()
	two, _ := file.reader()
	first, _ := io.ReadAll(io.LimitReader(one, 5))
	whole, _ := io.ReadAll(two)
	rest, _ := io.ReadAll(one)
	if !bytes.Equal(append(first, rest...), whole) || string(whole) != "helloworld" {
		t.Errorf("two readers have %q%q and %q", first, rest, whole)
	}
	file.close()
	if s.promised != 0 {
		t.Errorf("%s are still promised", s.promised)
	}
}
