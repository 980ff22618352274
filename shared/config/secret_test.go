package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestASecretNeedsNoPlaceOnTheCommandLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte("  from-a-file\nsecond\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for argument, want := range map[string]string{"itself": "itself", "-": "from-input", "@" + path: "from-a-file"} {
		if got, err := Secret(argument, strings.NewReader("from-input\n")); err != nil || got != want {
			t.Errorf("%s: %q, %v", argument, got, err)
		}
	}
	for _, argument := range []string{"-", "@", "@/nonexistent", "@/dev/null"} {
		if got, err := Secret(argument, strings.NewReader("\n")); err == nil {
			t.Errorf("%s: %q", argument, got)
		}
	}
	if _, err := Secret("-", strings.NewReader(strings.Repeat("x", 1<<20))); err == nil {
		t.Error("a secret of a MiB is read")
	}
}
