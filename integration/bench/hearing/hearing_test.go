package hearing

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	Child()
	os.Exit(m.Run())
}

// A few agents are heard in every way that is measured, by a coordinator and by the bare sink.
func TestAFewAgentsAreHeard(t *testing.T) {
	program, err := filepath.Abs(filepath.Join("..", "..", "..", "bin", "berth"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("%v: 'make build' makes it", err)
	}
	m := &Heard{agents: 30, returning: 20}
	err = m.raise(t.Context(), program, t.TempDir(), func(s *site) error {
		for _, step := range []func() error{
			func() error { return m.bare(t.Context(), s, paced) },
			func() error { return m.load(t.Context(), s, paced, nothing) },
			func() error { return m.comeBack(t.Context(), s) },
		} {
			if err := step(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if m.Rate <= 0 || m.sinkRate <= 0 || m.back <= 0 || m.back > time.Hour || m.Memory.All <= 0 || len(m.Visible) != samples {
		t.Errorf("measured are %+v", m)
	}
	if rows := m.rows(); len(rows) != len(Goals) {
		t.Errorf("%d rows", len(rows))
	}
}
