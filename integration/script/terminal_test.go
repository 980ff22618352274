package script

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"berth/coordinator/cli/clitest"
)

// terminalLimit is how long a command on a terminal may take. One that waits for Enter, which nobody presses, takes longer.
const terminalLimit = 60 * time.Second

// interrupts CODE SHOWN... -- COMMAND...: the command runs on a terminal of its own, of 80 columns. When the terminal shows a text that
// matches the first SHOWN, Ctrl-C is typed; when a later one matches, once more. Nothing else is typed, and without a SHOWN nothing at
// all. The command ends with exactly this exit code, and file screen has what the terminal shows then.
func interrupts(ts *testscript.TestScript, neg bool, args []string) {
	at := slices.Index(args, "--")
	if neg || at < 1 || at == len(args)-1 {
		ts.Fatalf("usage: interrupts CODE SHOWN... -- COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	var texts []*regexp.Regexp
	for _, text := range args[1:at] {
		pattern, err := regexp.Compile("(?m)" + text)
		ts.Check(err)
		texts = append(texts, pattern)
	}
	ctx, cancel := context.WithTimeout(context.Background(), terminalLimit)
	defer cancel()
	user, tty, err := clitest.NewTerminal()
	ts.Check(err)
	defer user.Close()
	command := exec.CommandContext(ctx, filepath.Join(binaries, args[at+1]), args[at+2:]...)
	command.Dir = ts.MkAbs(".")
	command.Env = []string{"TERM=xterm", "PATH=" + ts.Getenv("PATH"), "HOME=" + ts.Getenv("HOME"), "BERTH_CONFIG=" + ts.Getenv("BERTH_CONFIG")}
	command.Stdin, command.Stdout, command.Stderr = tty, tty, tty
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err = errors.Join(command.Start(), tty.Close())
	ts.Check(err)
	var shown screen
	typed := make(chan error, 1)
	go func() {
		typed <- shown.answer(user, texts)
	}()
	err = command.Wait()
	if said := <-typed; said != nil {
		ts.Fatalf("%v; the terminal shows\n%s", said, &shown)
	}
	ts.Check(os.WriteFile(ts.MkAbs("screen"), []byte(shown.String()), 0o600))
	if code := command.ProcessState.ExitCode(); code != want {
		ts.Fatalf("exit code %d, want %d: %v; the terminal shows\n%s", code, want, err, &shown)
	}
}

// screen is what somebody sees on a terminal: the sequences that a bar is drawn with are followed, and no others.
type screen struct {
	lines       [][]byte
	row, column int
	pending     []byte // the beginning of a sequence
}

// interrupt is the character that a terminal makes SIGINT of.
const interrupt = "\x03"

// answer reads what comes until nothing more does, and types an interrupt when each of the texts is seen, in this order.
func (s *screen) answer(terminal io.ReadWriter, texts []*regexp.Regexp) error {
	buffer := make([]byte, 4096)
	for {
		n, err := terminal.Read(buffer)
		s.show(buffer[:n])
		if len(texts) > 0 && texts[0].MatchString(s.String()) {
			texts = texts[1:]
			if _, err := io.WriteString(terminal, interrupt); err != nil {
				return err
			}
		}
		if err != nil { // EIO: the last writer has closed
			if len(texts) > 0 {
				return errors.New("it never showed " + texts[0].String())
			}
			return nil
		}
	}
}

// sequence is one that begins with ESC [ and moves the cursor or empties lines.
var sequence = regexp.MustCompile(`^\x1b\[([0-9?]*)([A-Za-z])`)

func (s *screen) show(text []byte) {
	text = append(s.pending, text...)
	s.pending = nil
	for len(text) > 0 {
		if text[0] != '\x1b' {
			s.put(text[0])
			text = text[1:]
			continue
		}
		found := sequence.FindSubmatch(text)
		if found == nil {
			s.pending = slices.Clone(text)
			return
		}
		count, _ := strconv.Atoi(string(found[1])) // none is 0
		switch found[2][0] {
		case 'A':
			s.row = max(s.row-max(count, 1), 0)
		case 'K':
			s.empty(s.row)
		case 'J':
			s.empty(s.row)
			for row := s.row + 1; row < len(s.lines); row++ {
				s.lines[row] = nil
			}
		}
		text = text[len(found[0]):]
	}
}

// empty takes away what stands behind the cursor in a line.
func (s *screen) empty(row int) {
	if row < len(s.lines) {
		s.lines[row] = s.lines[row][:min(s.column, len(s.lines[row]))]
	}
}

func (s *screen) put(b byte) {
	switch b {
	case '\r':
		s.column = 0
		return
	case '\n':
		s.row++
	}
	for len(s.lines) <= s.row {
		s.lines = append(s.lines, nil)
	}
	if b == '\n' {
		return
	}
	line := s.lines[s.row]
	for len(line) <= s.column {
		line = append(line, ' ')
	}
	line[s.column] = b
	s.lines[s.row] = line
	s.column++
}

func (s *screen) String() string { return string(bytes.Join(s.lines, []byte{'\n'})) }
