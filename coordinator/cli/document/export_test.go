package document_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
)

func TestExportWritesAWholeFile(t *testing.T) {
	f := clitest.Steady()
	w, _ := clitest.NewSite(t, f)
	folder := t.TempDir()
	path := filepath.Join(folder, "estate.yaml")
	if said := w.Run("export", "--to", path); said.Exit != term.Done || said.Out != "" || said.ErrOut != "written to "+path+"\n" {
		t.Errorf("exit %d, %q, %q", said.Exit, said.Out, said.ErrOut)
	}
	if data, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(data), "format: berth/estate/v1\n") {
		t.Errorf("%v: %q", err, data)
	}
	into := filepath.Join(folder, "none", "x.yaml")
	if said := w.Run("export", "--to", into, "-q"); said.Exit != term.Failed ||
		said.ErrOut != "berth: write the document to "+into+": no such file or directory\n" {
		t.Errorf("an export into no folder: %v", said)
	}
	if said := w.Run("export", "--to", folder, "-q"); said.Exit != term.Failed || !strings.Contains(
		said.ErrOut, folder+" is a directory: name a file in it",
	) {
		t.Errorf("an export over a folder: %v", said)
	}
	f.OnExportEstate = func(*berthv1.ExportEstateRequest) (*berthv1.ExportEstateResponse, error) {
		return nil, connect.NewError(connect.CodeUnavailable, errors.New("no leader"))
	}
	w.Patience = 0
	if said := w.Run("export", "--to", filepath.Join(folder, "second.yaml"), "-q"); said.Exit == term.Done {
		t.Error("an export without an answer is done")
	}
	if entries, _ := os.ReadDir(folder); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}

// A document that is asked for as YAML is one already, and not a text within YAML.
func TestExportAsYAMLIsTheDocument(t *testing.T) {
	w, _ := clitest.NewSite(t, clitest.Steady())
	plain, yaml := w.Run("export"), w.Run("export", "-o", "yaml")
	if plain.Exit != term.Done || plain.Out == "" || yaml.Out != plain.Out {
		t.Errorf("as YAML %q, plain %q", yaml.Out, plain.Out)
	}
}
