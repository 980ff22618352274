package storms

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	bench "berth/integration/bench/hearing"
)

func TestMain(m *testing.M) {
	bench.Child()
	os.Exit(m.Run())
}

// A small site goes through all of it. However long that takes, nothing that was accepted is lost or runs twice, and every figure is taken.
func TestASmallSiteLosesNothing(t *testing.T) {
	program, err := filepath.Abs(filepath.Join("..", "..", "..", "bin", "berth"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("%v: 'make build' makes it", err)
	}
	values, err := Measure(t.Context(), program, "/var/tmp", Size{Nodes: 30, VMs: 600, Rest: 4 * time.Second}, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range Figures {
		value, taken := values[one.Name]
		if !taken || value <= 0 && one.Wanted != none {
			t.Errorf("%s is %v, taken: %t", one.Name, value, taken)
		}
	}
	if values[lost] > 0 || values[refused] > 0 {
		t.Errorf("%v starts are lost or run twice, and %v were not accepted", values[lost], values[refused])
	}
}
