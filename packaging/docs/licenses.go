package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// legal are the files that say under what a module is given, and whose it is. Those of licenceFile say what may be done with it.
var (
	legal       = regexp.MustCompile(`(?i)^((un)?licen[sc]e|copying|notice|copyright|patents)`)
	licenceFile = regexp.MustCompile(`(?i)^((un)?licen[sc]e|copying)`)
)

// allowed are the licences, by their names in SPDX, under which a module may be linked into programs that are given away under the Apache
// License 2.0. They ask that their texts come with the program, which is what writeLicenses is for. The Mozilla one asks for the source of
// the module itself too, as it was linked: that is public, and the list of what is linked names its version and sum.
var allowed = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MPL-2.0", "Unlicense"}

// known is how much of a licence's file has to be the text of licences, in per cent. The rest names the owners.
const known = 75

// linked is something that is linked into a binary.
type linked struct {
	path, version string // path is std for the Go standard library
	folder        string // of its source
	licences      []string
}

// linkedInto finds what is linked into a binary, which itself says what that is, the standard library first. What has no licence that is
// allowed is an error: it must not be shipped.
func linkedInto(info *debug.BuildInfo) ([]linked, error) {
	goRoot, err := output("go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	all := []linked{{path: "std", version: info.GoVersion, folder: goRoot}}
	for _, module := range info.Deps {
		folder, err := output("go", "list", "-m", "-f", "{{.Dir}}", module.Path)
		if err != nil {
			return nil, err
		}
		all = append(all, linked{path: module.Path, version: module.Version, folder: folder})
	}
	for i := range all {
		if all[i].licences, err = licencesIn(all[i].folder); err != nil {
			return nil, fmt.Errorf("%s %s: %w", all[i].path, all[i].version, err)
		}
	}
	return all, nil
}

// licencesIn tells under which licences what is in a folder is given, in order.
func licencesIn(folder string) ([]string, error) {
	names, err := filesIn(folder, licenceFile)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return nil, err
		}
		is := licensecheck.Scan(text)
		if is.Percent < known {
			return nil, fmt.Errorf("%s is no text of licences that are known, or for the smaller part: read it, and link something else if need be",
				filepath.Join(folder, name))
		}
		for _, match := range is.Match {
			if !slices.Contains(allowed, match.ID) {
				return nil, fmt.Errorf("%s is %s, which is none of %s: link something else", filepath.Join(folder, name), match.ID,
					strings.Join(allowed, ", "))
			}
			found = append(found, match.ID)
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// filesIn are the files of a folder whose names match, which are some.
func filesIn(folder string, names *regexp.Regexp) (found []string, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if !entry.IsDir() && names.MatchString(entry.Name()) && filepath.Ext(entry.Name()) != ".go" {
			found = append(found, entry.Name())
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("there is no licence text in %s", folder)
	}
	return found, nil
}

// writeLicenses writes the licences of everything that is linked into a binary.
func writeLicenses(binary string, all []linked, target string) error {
	var text strings.Builder
	fmt.Fprintf(&text, "Licences of what is linked into %s.\n", filepath.Base(binary))
	for _, one := range all {
		names, err := filesIn(one.folder, legal)
		if err != nil {
			return err
		}
		what := one.path + " " + one.version
		if one.path == "std" {
			what = "the Go standard library " + one.version
		}
		for _, name := range names {
			content, err := os.ReadFile(filepath.Join(one.folder, name))
			if err != nil {
				return err
			}
			fmt.Fprintf(&text, "\n%s\n%s: %s\n\n%s", strings.Repeat("-", 78), what, name, content)
		}
	}
	return os.WriteFile(target, []byte(text.String()), 0o644)
}

func output(name string, arguments ...string) (string, error) {
	command := exec.Command(name, arguments...)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", command, err)
	}
	return strings.TrimSpace(string(out)), nil
}
