package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// mostSecret bounds a secret, in bytes.
const mostSecret = 4096

// Secret reads a secret that a command line names: "-" is the first line of in, "@FILE" that of a file, and everything else the secret
// itself, which other accounts of the machine may see while the command runs.
func Secret(argument string, in io.Reader) (string, error) {
	path, isFile := strings.CutPrefix(argument, "@")
	switch {
	case isFile:
		file, err := os.Open(path)
		if err != nil {
			return "", err
		}
		defer file.Close()
		in = file
	case argument != "-":
		return argument, nil
	}
	text, err := io.ReadAll(io.LimitReader(in, mostSecret+1))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", argument, err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	if line = strings.TrimSpace(line); line == "" || len(text) > mostSecret {
		return "", errors.New(argument + " has no secret in its first line")
	}
	return line, nil
}
