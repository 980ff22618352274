// Package config reads and writes the YAML files of Berth's programs.
//
// Reading is strict: a key that does not exist, a key given twice and a second document are errors with file and line.
// Writing is atomic: a reader sees the old file or the new one, also after a crash.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ErrSyntax reports a file that is not what it should be: malformed YAML, an unknown key, a value of the wrong kind.
var ErrSyntax = errors.New("not a valid configuration")

// Load reads the YAML file at path into a pointer to a struct. Keys that the file does not have leave the struct's
// values as they are, so defaults are set before. An empty file is valid. The error of a missing file satisfies
// errors.Is(err, fs.ErrNotExist), every other complaint about the content errors.Is(err, ErrSyntax).
func Load(path string, into any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	return parse(path, data, into)
}

// parse is Load of what path has in it.
func parse(path string, data []byte, into any) error {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(into); err != nil {
		if errors.Is(err, io.EOF) {
			return nil
		}
		return explain(path, err)
	}
	var second yaml.Node
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s:%d: a second YAML document, want one: %w", path, max(second.Line, 1), ErrSyntax)
	}
	return nil
}

var (
	lined   = regexp.MustCompile(`^(?:yaml: )?line (\d+): (.*)$`)
	unknown = regexp.MustCompile(`^field (.+) not found in type .+$`)
	twice   = regexp.MustCompile(`^mapping key (".+") already defined at (line \d+)$`)
	kind    = regexp.MustCompile("^cannot unmarshal !!(\\S+) (`.*` )?into (.+)$")
)

// explain turns the library's words, which name Go types, into what somebody who edits the file can use.
func explain(path string, err error) error {
	lines := []string{err.Error()}
	var many *yaml.TypeError
	if errors.As(err, &many) {
		lines = many.Errors
	}
	said := make([]string, 0, len(lines))
	for _, line := range lines {
		place, text := path, strings.TrimPrefix(line, "yaml: ")
		if m := lined.FindStringSubmatch(line); m != nil {
			place, text = path+":"+m[1], m[2]
		}
		if m := unknown.FindStringSubmatch(text); m != nil {
			text = fmt.Sprintf("unknown key %q", m[1])
		} else if m := twice.FindStringSubmatch(text); m != nil {
			text = fmt.Sprintf("key %s is already given at %s", m[1], m[2])
		} else if m := kind.FindStringSubmatch(text); m != nil {
			text = fmt.Sprintf("value %shas the wrong kind (%s), want %s", m[2], m[1], kindName(m[3]))
		}
		said = append(said, place+": "+text)
	}
	return fmt.Errorf("%s: %w", strings.Join(said, "; "), ErrSyntax)
}

// kindName says in YAML's words what a Go type wants.
func kindName(goType string) string {
	switch {
	case strings.HasPrefix(goType, "[]"):
		return "a list"
	case goType == "string":
		return "a text"
	case goType == "bool":
		return "true or false"
	case strings.HasPrefix(goType, "int"), strings.HasPrefix(goType, "uint"), strings.HasPrefix(goType, "float"):
		return "a number"
	}
	return "keys and values"
}

// Write stores from as YAML at path with the given mode. Missing folders are made with mode 0755.
func Write(path string, from any, mode os.FileMode) error {
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	if err := encoder.Encode(from); err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	return WriteFile(path, text.Bytes(), mode)
}

// WriteFile stores data at path with the given mode, atomically and durably. Missing folders are made with mode 0755.
func WriteFile(path string, data []byte, mode os.FileMode) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := replace(folder, path, data, mode); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

func replace(folder, path string, data []byte, mode os.FileMode) (err error) {
	// CreateTemp makes the file with mode 0600, so a key is never readable by others, not even for a moment.
	temporary, err := os.CreateTemp(folder, "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = temporary.Close()
			_ = os.Remove(temporary.Name())
		}
	}()
	if _, err = temporary.Write(data); err != nil {
		return err
	}
	if err = temporary.Chmod(mode); err != nil {
		return err
	}
	if err = temporary.Sync(); err != nil {
		return err
	}
	if err = temporary.Close(); err != nil {
		return err
	}
	if err = os.Rename(temporary.Name(), path); err != nil {
		return err
	}
	return syncFolder(folder)
}

// syncFolder makes the rename survive a power cut.
func syncFolder(folder string) error {
	handle, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(handle.Sync(), handle.Close())
}
