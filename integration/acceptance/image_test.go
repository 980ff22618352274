package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// apt-get installs what a package recommends, and the machines cannot fetch it.
func TestTheImageHasWhatPackagesRecommend(t *testing.T) {
	files, err := filepath.Glob("../../packaging/berth*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	recommends := regexp.MustCompile(`(?s)\n  deb:.*?\n    recommends: \[(.*?)\]`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := recommends.FindSubmatch(text)
		if found == nil {
			t.Fatalf("%s: the DEB package recommends nothing", file)
		}
		for _, name := range strings.Split(string(found[1]), ", ") {
			if !slices.Contains(hypervisor, name) {
				t.Errorf("%s recommends %s, which the image lacks", filepath.Base(file), name)
			}
		}
	}
	if len(files) == 0 {
		t.Error("no package is described")
	}
}
