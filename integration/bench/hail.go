package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"berth/integration/bench/report"
)

// hailPaths are where distributions put the allocator of Ganeti's htools.
var hailPaths = []string{"/usr/lib/ganeti/iallocators/hail", "/usr/bin/hail"}

func findHail() (string, error) {
	for _, path := range hailPaths {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("hail of Ganeti's htools is not at %v: install ganeti-htools", hailPaths)
}

// measureP4 asks hail and Berth for one allocation on the same cluster: the whole process each, file load included, in
// turns. hail is spared its global N+1 check, which is cubic in the number of hosts, and the dynamic load that its file
// does not give.
func measureP4(ctx context.Context, b *bench) ([]report.Row, error) {
	hail, err := findHail()
	if err != nil {
		return nil, err
	}
	goals := []struct {
		hosts, rounds int
		atLeast       float64
	}{{1000, b.rounds(2, 5), 50}}
	if !b.quick {
		goals = append(goals, struct {
			hosts, rounds int
			atLeast       float64
		}{5000, 1, 300})
	}
	var rows []report.Row
	for _, goal := range goals {
		s := newSite(goal.hosts)
		data, request, scenario, err := s.files(b.folder("p4-" + strconv.Itoa(goal.hosts)))
		if err != nil {
			return rows, err
		}
		var theirs, ours report.Figures
		for range goal.rounds {
			took, err := hailOnce(ctx, hail, data, request)
			if err != nil {
				return rows, err
			}
			theirs.Add(took)
			// One process of ours is short compared to one of theirs.
			for range 5 {
				if took, err = simulateOnce(ctx, b.berth(), scenario); err != nil {
					return rows, err
				}
				ours.Add(took)
			}
		}
		ratio := theirs.Median() / ours.Median()
		rows = append(rows, report.Row{
			Goal: "P4", What: fmt.Sprintf("berth simulate: one start among %d hosts with %d VMs, whole process", goal.hosts, len(s.vms)),
			Measured: ours.Spread(report.Seconds),
			Against:  "hail --no-capacity-checks " + theirs.Spread(report.Seconds) + ": " + report.Times(ratio) + " faster",
			Wanted:   fmt.Sprintf(">= %gx", goal.atLeast), Verdict: report.Judge(goal.atLeast, ratio),
		})
	}
	if b.quick {
		rows = append(rows, report.Row{What: "5,000 hosts are left out by -quick: hail takes a minute and a half for them"})
	}
	return rows, nil
}

// hailOnce is one allocation by hail. An answer that names no node is an error.
func hailOnce(ctx context.Context, hail, data, request string) (time.Duration, error) {
	begun := time.Now()
	out, err := output(ctx, hail, "--no-capacity-checks", "--ignore-dynu", "-t", data, request)
	took := time.Since(begun)
	if err != nil {
		return 0, err
	}
	var answer struct {
		Success bool
		Result  []string
	}
	if err := json.Unmarshal(out, &answer); err != nil || !answer.Success || len(answer.Result) != 1 {
		return 0, fmt.Errorf("hail answered %s", bytes.TrimSpace(out))
	}
	return took, nil
}

// simulateOnce is one placement by Berth.
func simulateOnce(ctx context.Context, berth, scenario string) (time.Duration, error) {
	begun := time.Now()
	_, err := output(ctx, berth, "simulate", scenario)
	return time.Since(begun), err
}

// output runs a program to its end; an error has what it said.
func output(ctx context.Context, name string, args ...string) ([]byte, error) {
	var said, complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = &said, &complaint
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", filepath.Base(name), err, bytes.TrimSpace(complaint.Bytes()))
	}
	return said.Bytes(), nil
}
