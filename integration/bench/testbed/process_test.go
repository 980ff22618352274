package testbed

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestAProcessIsMeasuredAndEnded(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	p, err := StartProcess(log, "sh", "-c", "echo busy; while :; do :; done")
	if err != nil {
		t.Fatal(err)
	}
	used, err := CPUTime(p.PID())
	for deadline := time.Now().Add(20 * time.Second); err == nil && used < 30*time.Millisecond; used, err = CPUTime(p.PID()) {
		if time.Now().After(deadline) {
			t.Fatalf("a busy process has used %v", used)
		}
		time.Sleep(time.Millisecond)
	}
	if err != nil {
		t.Fatal(err)
	}
	if m, err := Resident(p.PID()); err != nil || m.own <= 0 || m.All < m.own {
		t.Errorf("resident %+v, %v", m, err)
	}
	if err := p.Alive(); err != nil {
		t.Errorf("while it runs: %v", err)
	}
	if err := p.End(syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	if err := p.Alive(); err == nil || !strings.Contains(err.Error(), "busy") {
		t.Errorf("after its end: %v, want the end of its log", err)
	}
	if _, err := CPUTime(p.PID()); !os.IsNotExist(err) {
		t.Errorf("CPU time of a process that is gone: %v", err)
	}
}
