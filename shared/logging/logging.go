// Package logging makes the loggers of Berth's programs: JSON lines for machines, plain lines on a terminal.
package logging

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/term"
)

// ErrLevel reports a log level that does not exist.
var ErrLevel = errors.New("unknown log level")

// New makes a logger that writes to w at the level trace, debug, info, warn, error or off; empty means info.
// It writes JSON lines unless w is a terminal.
func New(name, level string, w io.Writer) (hclog.Logger, error) {
	if level == "" {
		level = "info"
	}
	parsed := hclog.LevelFromString(level)
	if parsed == hclog.NoLevel {
		return nil, fmt.Errorf("%w %q: use trace, debug, info, warn, error or off", ErrLevel, level)
	}
	return hclog.New(&hclog.LoggerOptions{
		Name:       name,
		Level:      parsed,
		Output:     w,
		JSONFormat: !isTerminal(w),
	}), nil
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
