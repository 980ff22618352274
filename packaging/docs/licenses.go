package main

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var legal = regexp.MustCompile(`(?i)^((un)?licen[sc]e|copying|notice|copyright)`)

// writeLicenses writes the licences of everything linked into the binary. The binary itself says what that is. A module
// without a licence text is an error: it must not be shipped.
func writeLicenses(binary, target string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "Licences of what is linked into %s.\n", filepath.Base(binary))
	goRoot, err := output("go", "env", "GOROOT")
	if err != nil {
		return err
	}
	if err := appendLegal(&text, "the Go standard library "+info.GoVersion, goRoot); err != nil {
		return err
	}
	for _, module := range info.Deps {
		folder, err := output("go", "list", "-m", "-f", "{{.Dir}}", module.Path)
		if err != nil {
			return err
		}
		if err := appendLegal(&text, module.Path+" "+module.Version, folder); err != nil {
			return err
		}
	}
	return os.WriteFile(target, []byte(text.String()), 0o644)
}

func appendLegal(text *strings.Builder, what, folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return e.IsDir() || !legal.MatchString(e.Name()) })
	if len(entries) == 0 {
		return fmt.Errorf("%s has no licence text in %s", what, folder)
	}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(text, "\n%s\n%s: %s\n\n%s", strings.Repeat("-", 78), what, entry.Name(), content)
	}
	return nil
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
