package weekly_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Block characters are for terminals that have them. Everybody else sees the same picture in ASCII.
func TestAPictureIsDrawnWithWhatTheTerminalHas(t *testing.T) {
	for name, env := range map[string]map[string]string{
		"blocks": {"LANG": "de_DE.UTF-8"}, "ascii": {"LANG": "de_DE.UTF-8", "LC_ALL": "C"}, "utf8": {"LC_CTYPE": "C.utf8", "LANG": "C"},
	} {
		w, _ := clitest.NewSite(t, clitest.Steady())
		w.Env = env
		said := w.Run("vm", "profile", "web1")
		if said.Exit != term.Done {
			t.Errorf("exit %d, %s", said.Exit, said.ErrOut)
		}
		if name != "utf8" {
			clitest.Golden(t, name+".golden", said.Out)
		}
		if blocks := strings.ContainsRune(said.Out, '█'); blocks != (name != "ascii") {
			t.Errorf("%s: block characters: %t", name, blocks)
		}
	}
}

// Programs read the figures, and no picture.
func TestFiguresForPrograms(t *testing.T) {
	w, _ := clitest.NewSite(t, clitest.Steady())
	said := w.Run("vm", "profile", "web1", "-o", "json")
	var answer struct {
		VM    string `json:"vm"`
		Hours []struct {
			BeganAt     time.Time `json:"began_at"`
			CPURatio    *float64  `json:"cpu_ratio"`
			MemoryBytes *int64    `json:"memory_bytes"`
			Node        string    `json:"node"`
		} `json:"hours"`
	}
	if err := json.Unmarshal([]byte(said.Out), &answer); err != nil {
		t.Fatalf("%v: %s", err, said.Out)
	}
	if len(answer.Hours) != 156 || answer.VM != "web1" || answer.Hours[0].CPURatio == nil || *answer.Hours[0].CPURatio != 0 ||
		*answer.Hours[14].CPURatio != 3 || *answer.Hours[0].MemoryBytes != 2<<30 || answer.Hours[0].Node != "node1" ||
		answer.Hours[14].BeganAt.Hour() != 14 {
		t.Errorf("%d hours: %+v", len(answer.Hours), answer.Hours[:min(len(answer.Hours), 15)])
	}
}

// What is not known is said, and what does not tell is named.
func TestWhatIsNotKnownYet(t *testing.T) {
	f := clitest.Steady()
	w, _ := clitest.NewSite(t, f)
	f.OnProfile = func(r *berthv1.ProfileRequest) (*berthv1.ProfileResponse, error) {
		return &berthv1.ProfileResponse{SchemaVersion: "1", Node: r.GetNode(), Warnings: []string{"node node1 is silent"}}, nil
	}
	said := w.Run("node", "profile", "node1")
	if said.Exit != term.Done || !strings.HasPrefix(said.Out, "node/node1: 0 of 168 hours of the week are known") ||
		!strings.Contains(said.ErrOut, "no hour is known yet") || !strings.Contains(said.ErrOut, "warning: node node1 is silent") {
		t.Errorf("exit %d, %q, %q", said.Exit, said.Out, said.ErrOut)
	}
	f.OnProfile = func(r *berthv1.ProfileRequest) (*berthv1.ProfileResponse, error) {
		return &berthv1.ProfileResponse{SchemaVersion: "1", Node: r.GetNode(), Hours: []*berthv1.ProfileHour{
			{BeganAt: timestamppb.New(time.Date(2026, 11, 17, 14, 0, 0, 0, time.UTC)), CpuRatio: new(0.0)},
		}}, nil
	}
	said = w.Run("node", "profile", "node1")
	for _, want := range []string{
		"1 of 168 hours", "CPU: the most is 0%", "?: not known (167 hours)", "memory: not known", "delay: not known",
	} {
		if !strings.Contains(said.Out, want) {
			t.Errorf("%q is not said:\n%s", want, said.Out)
		}
	}
	for last, want := range map[string]string{
		"hour": "node/node1: 0 of 60 minutes of the last hour are known", "day": "node/node1: 0 of 24 hours of the last day are known",
	} {
		said := w.Run("node", "profile", "node1", "--last", last)
		if !strings.HasPrefix(said.Out, want) || !strings.Contains(said.Out, "CPU: not known") {
			t.Errorf("%s: %q, want %q", last, said.Out, want)
		}
	}
	if said := w.Run("vm", "profile"); said.Exit != term.WrongUsage {
		t.Errorf("without a name: exit %d", said.Exit)
	}
}
