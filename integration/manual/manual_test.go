package manual

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What the manual says works as it stands there, from an empty cluster, in the order of the pages. Each command finds what those before
// it have left.
func TestTheManualRunsAsItIsWritten(t *testing.T) {
	list := all(t)
	s := newSite(t)
	for _, one := range list {
		switch {
		case one.file.name != "":
			if err := os.WriteFile(filepath.Join(s.work, filepath.Base(one.file.name)), []byte(one.file.text), 0o600); err != nil {
				t.Fatal(err)
			}
		case one.skip == "ssh":
			if hosts, is := strings.CutPrefix(one.command.text, "berth node add "); is && !strings.Contains(hosts, "-") {
				s.join(t, strings.Fields(hosts)...)
			}
		case one.skip == "":
			began := time.Now()
			out, err := s.sh(one.command.text)
			code := 0
			if err != nil {
				code = -1
				if ended := (*exec.ExitError)(nil); errors.As(err, &ended) {
					code = ended.ExitCode()
				}
			}
			if code != one.exit {
				t.Errorf("%s\nended with %d, want %d: %v\n%s", one.command, code, one.exit, err, out)
			} else {
				t.Logf("%s\n%s(%s)", one.command, out, time.Since(began).Round(time.Millisecond))
			}
		}
	}
}
