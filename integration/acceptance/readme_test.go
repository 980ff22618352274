package main

import (
	"os"
	"strings"
	"testing"
)

// From two bare hypervisors to a migration to the best node: the README says how, in five commands, and the containers run them.
func TestTheFirstRunIsFiveCommands(t *testing.T) {
	text, err := os.ReadFile("../../" + readme)
	if err != nil {
		t.Fatal(err)
	}
	commands := firstRun(string(text))
	begins := []string{"apt-get install ./berth_*.deb", "berth init", "berth node add hv1 hv2", "berth vm start ", "berth vm migrate "}
	if len(commands) != len(begins) {
		t.Fatalf("the first run has the commands %q", commands)
	}
	for i, begin := range begins {
		if !strings.HasPrefix(commands[i], begin) {
			t.Errorf("command %d is %q, want %s", i+1, commands[i], begin)
		}
	}
	if !strings.HasSuffix(commands[4], " --best") {
		t.Errorf("the migration is not to the best node: %q", commands[4])
	}
}
