// Package expositiontest is what tests of pages for Prometheus stand on.
package expositiontest

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"berth/shared/exposition"
)

// Page is the text of what is written, which Prometheus' own linter has to find nothing in.
func Page(t testing.TB, write func(*exposition.Page)) string {
	t.Helper()
	var text bytes.Buffer
	page := exposition.NewPage(&text)
	write(page)
	if err := page.Flush(); err != nil {
		t.Fatal(err)
	}
	Lint(t, text.Bytes())
	return text.String()
}

// Lint lets Prometheus' own linter look at a page.
func Lint(t testing.TB, page []byte) {
	t.Helper()
	if problems, err := promlint.New(bytes.NewReader(page)).Lint(); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

// Golden compares a page with testdata/NAME.golden, or writes that anew.
func Golden(t testing.TB, name, got string, update bool) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}
