package main

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
	p, err := startProcess(log, "sh", "-c", "echo busy; while :; do :; done")
	if err != nil {
		t.Fatal(err)
	}
	used, err := cpuTime(p.pid())
	for deadline := time.Now().Add(20 * time.Second); err == nil && used < 30*time.Millisecond; used, err = cpuTime(p.pid()) {
		if time.Now().After(deadline) {
			t.Fatalf("a busy process has used %v", used)
		}
		time.Sleep(time.Millisecond)
	}
	if err != nil {
		t.Fatal(err)
	}
	if m, err := resident(p.pid()); err != nil || m.own <= 0 || m.all < m.own {
		t.Errorf("resident %+v, %v", m, err)
	}
	if err := p.alive(); err != nil {
		t.Errorf("while it runs: %v", err)
	}
	if err := p.end(syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	if err := p.alive(); err == nil || !strings.Contains(err.Error(), "busy") {
		t.Errorf("after its end: %v, want the end of its log", err)
	}
	if _, err := cpuTime(p.pid()); !os.IsNotExist(err) {
		t.Errorf("CPU time of a process that is gone: %v", err)
	}
}

func TestOnlyKnownGoalsAreChosen(t *testing.T) {
	for only, want := range map[string]string{"": strings.Join(goals(), ","), "R4": "R4", "R4,R1": "R1,R4", "A3": "A1,A2,A3,A4"} {
		chosen, err := choose(only)
		if err != nil {
			t.Errorf("%q: %v", only, err)
		}
		var got []string
		for _, s := range chosen {
			got = append(got, s.goals...)
		}
		if strings.Join(got, ",") != want {
			t.Errorf("%q chooses %v, want %s", only, got, want)
		}
	}
	if _, err := choose("R1,R9"); err == nil || !strings.Contains(err.Error(), `"R9"`) {
		t.Errorf("a goal that does not exist: %v", err)
	}
}
