package logging

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
)

func TestLinesAreJSONWhenNobodyWatches(t *testing.T) {
	var out bytes.Buffer
	log, err := New("coordinator", "info", &out)
	if err != nil {
		t.Fatal(err)
	}
	log.Debug("not at this level")
	log.Info("node joined", "node", "node1")

	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatalf("want exactly one JSON line, got %q: %v", out.String(), err)
	}
	for key, want := range map[string]string{
		"@level": "info", "@message": "node joined", "@module": "coordinator", "node": "node1",
	} {
		if line[key] != want {
			t.Errorf("%s = %v, want %q", key, line[key], want)
		}
	}
}

func TestLevels(t *testing.T) {
	for _, level := range []string{"", "trace", "debug", "info", "warn", "error", "off", "INFO"} {
		if _, err := New("x", level, &bytes.Buffer{}); err != nil {
			t.Errorf("level %q: %v", level, err)
		}
	}
	if _, err := New("x", "loud", &bytes.Buffer{}); !errors.Is(err, ErrLevel) {
		t.Errorf("level loud: got %v, want ErrLevel", err)
	}
}
