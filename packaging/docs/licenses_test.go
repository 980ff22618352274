package main

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// This test has all linked in that both programs have, and so it looks at each of their modules.
func TestWhatIsLinkedInIsUnderALicenceThatIsAllowed(t *testing.T) {
	info, known := debug.ReadBuildInfo()
	if !known {
		t.Fatal("this test does not tell what is linked into it")
	}
	all, err := linkedInto(info)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for _, one := range all {
		if len(one.licences) == 0 {
			t.Errorf("%s is under no licence", one.path)
		}
		found[one.path] = one.licences
	}
	for path, want := range map[string][]string{
		"std": {"BSD-3-Clause"}, "github.com/hashicorp/raft": {"MPL-2.0"}, "libvirt.org/go/libvirt": {"MIT"},
		"go.yaml.in/yaml/v3": {"Apache-2.0", "MIT"}, "github.com/vbauerster/mpb/v8": {"Unlicense"},
	} {
		if !slices.Equal(found[path], want) {
			t.Errorf("%s is under %q, want %q", path, found[path], want)
		}
	}
}

func TestWhatIsUnderNoAllowedLicenceIsNotShipped(t *testing.T) {
	const (
		isc = "Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted, " +
			"provided that the above copyright notice and this permission notice appear in all copies.\n\n" +
			"THE SOFTWARE IS PROVIDED \"AS IS\" AND THE AUTHOR DISCLAIMS ALL WARRANTIES WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED " +
			"WARRANTIES OF MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR ANY SPECIAL, DIRECT, INDIRECT, OR " +
			"CONSEQUENTIAL DAMAGES OR ANY DAMAGES WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN ACTION OF CONTRACT, " +
			"NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.\n"
		gpl = "This program is free software: you can redistribute it and/or modify it under the terms of the GNU General Public License as " +
			"published by the Free Software Foundation, either version 3 of the License, or (at your option) any later version.\n"
	)
	for name, c := range map[string]struct {
		files map[string]string
		says  string // of the error; empty: it may be linked in
	}{
		"allowed":                  {map[string]string{"LICENSE": "Copyright 2026 Somebody\n\n" + isc}, ""},
		"spelled another way":      {map[string]string{"Licence.txt": isc}, ""},
		"not allowed":              {map[string]string{"COPYING": gpl}, "GPL-3.0"},
		"one of two not allowed":   {map[string]string{"LICENSE": isc, "LICENSE.gpl": gpl}, "GPL-3.0"},
		"a licence of its own":     {map[string]string{"LICENSE": "You may look at this program, on Sundays."}, "no text of licences"},
		"a licence and conditions": {map[string]string{"LICENSE": isc + strings.Repeat("Not to be used on Sundays.\n", 60)}, "smaller part"},
		"a program":                {map[string]string{"license.go": isc}, "no licence text"},
		"a notice alone":           {map[string]string{"NOTICE": "Copyright 2026 Somebody"}, "no licence text"},
		"nothing":                  {nil, "no licence text"},
	} {
		folder := t.TempDir()
		for file, text := range c.files {
			if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		is, err := licencesIn(folder)
		switch {
		case c.says == "" && (err != nil || !slices.Equal(is, []string{"ISC"})):
			t.Errorf("%s: %q, %v", name, is, err)
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s: %q, %v, want an error that says %q", name, is, err, c.says)
		}
	}
}
