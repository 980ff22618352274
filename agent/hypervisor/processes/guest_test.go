package processes

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	const line = "4513 (qemu) x (86) S 1 4512 4512 0 -1 138412416 4824 0 3 0 10 31 7 9 20 0 5 0 704063 1479700480 9282 18446744073709551615\n"
	cpu, rss, err := parseStat([]byte(line))
	if err != nil || cpu != 410*time.Millisecond || rss != 9282*pageSize {
		t.Errorf("got %s, %d, %v", cpu, rss, err)
	}
	for _, line := range []string{"", "1 (x) S 1 2", "1 (x) S a b c d e f g h i j k l m n o p q r s t u v w"} {
		if _, _, err := parseStat([]byte(line)); !errors.Is(err, ErrNotHere) {
			t.Errorf("%q: %v", line, err)
		}
	}
}

func TestParseSchedstat(t *testing.T) {
	if delay, err := parseSchedstat([]byte("387880337 283793892 1396\n")); err != nil || delay != 283793892 {
		t.Errorf("got %d, %v", delay, err)
	}
	for _, text := range []string{"", "5", "5 x 7"} {
		if delay, err := parseSchedstat([]byte(text)); err == nil {
			t.Errorf("%q: got %s", text, delay)
		}
	}
}

// A process stands for a guest's when it has the UUID on its command line.
// TestStandsForAGuest is the process that TestProcessOfAGuest looks at. Run as a test it has nothing to do.
func TestStandsForAGuest(*testing.T) {
	if os.Getenv("STAND_FOR_A_GUEST") == "" {
		return
	}
	held := bytes.Repeat([]byte{1}, 64<<20)
	fmt.Println("ready")
	time.Sleep(time.Minute) // killed long before
	runtime.KeepAlive(held)
}

func TestProcessOfAGuest(t *testing.T) {
	dir := t.TempDir()
	// Something of a guest's size: the kernel counts the memory of small processes in batches, and says 0 for a while.
	guest := exec.Command(os.Args[0], "-test.run=^TestStandsForAGuest$", "1000")
	guest.Env = append(os.Environ(), "STAND_FOR_A_GUEST=1")
	ready, err := guest.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := guest.Start(); err != nil {
		t.Fatal(err)
	}
	stop := func() { _ = guest.Process.Kill(); _ = guest.Wait() }
	defer stop()
	if _, err := ready.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "web-1.pid"), []byte(strconv.Itoa(guest.Process.Pid)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(dir, "web-1", guestUUID); !errors.Is(err, ErrNotHere) {
		t.Errorf("somebody else's process was taken for the guest's: %v", err)
	}
	p, err := Find(dir, "web-1", "1000") // what is on its command line
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var buffer [1024]byte
	if cpu, rss, err := p.Usage(buffer[:]); err != nil || rss <= 0 || cpu < 0 {
		t.Errorf("got %s, %d, %v", cpu, rss, err)
	}
	if _, err := p.Delay(1); !errors.Is(err, ErrNotHere) {
		t.Errorf("a delay without vCPUs: %v", err)
	}
	stop()
	if cpu, rss, err := p.Usage(buffer[:]); !errors.Is(err, ErrNotHere) {
		t.Errorf("of a dead process: %s, %d, %v", cpu, rss, err)
	}
}

func TestNoProcess(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"garbled": "x", "gone": "999999999"} {
		if err := os.WriteFile(filepath.Join(dir, name+".pid"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"garbled", "gone", "missing"} {
		if _, err := Find(dir, name, guestUUID); !errors.Is(err, ErrNotHere) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
