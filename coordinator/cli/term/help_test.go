package term_test

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"berth/coordinator/cli"
	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/term"
)

// Whatever number is not one, of all flags of all commands that take one, is told with the flag and an example.
func TestABadNumberNamesItsFlagAndAnExample(t *testing.T) {
	w, _ := clitest.NewSite(t)
	tried := 0
	var walk func(*cobra.Command, []string)
	walk = func(cmd *cobra.Command, line []string) {
		cmd.Flags().VisitAll(func(flag *pflag.Flag) {
			if !strings.Contains("int int32 int64 uint uint32 uint64 float64 duration intSlice int32Slice", flag.Value.Type()) ||
				flag.Value.Type() == "" {
				return
			}
			for _, bad := range []string{"two", "9999999999999999999999999"} {
				if bad != "two" && (flag.Value.Type() == "float64") {
					continue
				}
				tried++
				said := w.Run(append(line, "--"+flag.Name+"="+bad)...)
				if said.Exit != term.WrongUsage || !strings.Contains(said.ErrOut, fmt.Sprintf("for %q flag: want", "--"+flag.Name)) ||
					!strings.Contains(said.ErrOut, "for instance") || strings.Contains(said.ErrOut, "strconv") || strings.Contains(said.ErrOut, "time:") {
					t.Errorf("%q --%s=%s: exit %d, %s", line, flag.Name, bad, said.Exit, said.ErrOut)
				}
			}
		})
		for _, child := range cmd.Commands() {
			walk(child, append(line[:len(line):len(line)], child.Name()))
		}
	}
	walk(cli.New(cli.Options{}), nil)
	if tried < 40 {
		t.Errorf("only %d were tried", tried)
	}
}

// On a terminal no line of help is wider than it but an example and what is one long word, and no word is lost.
func TestHelpFitsTheTerminal(t *testing.T) {
	w, _ := clitest.NewSite(t)
	user, tty := clitest.OpenTerminal(t)
	for _, line := range []string{"vm start --help", "decision show --help", "events --help"} {
		read := make(chan string)
		go func() {
			var got bytes.Buffer
			buffer := make([]byte, 4096)
			for !strings.HasSuffix(strings.Join(strings.Fields(got.String()), " "), "no notes on the standard error") {
				n, err := user.Read(buffer)
				got.Write(buffer[:n])
				if err != nil {
					break
				}
			}
			read <- got.String()
		}()
		w.RunTo(t.Context(), tty, io.Discard, strings.Fields(line)...)
		got := strings.ReplaceAll(<-read, "\r\n", "\n")
		for row := range strings.SplitSeq(got, "\n") {
			long := slices.ContainsFunc(strings.Fields(row), func(word string) bool { return len(word) > 40 }) // nothing can break it
			if len([]rune(row)) > 80 && !long && !strings.HasPrefix(row, "  berth ") {
				t.Errorf("%s: %d columns: %s", line, len([]rune(row)), row)
			}
		}
		words := strings.Fields(w.Run(strings.Fields(line)...).Out)
		if strings.Join(strings.Fields(got), " ") != strings.Join(words, " ") {
			t.Errorf("%s has other words:\n%s", line, got)
		}
	}
}

// Paragraphs are broken anew, and what is set in stays.
func TestWrap(t *testing.T) {
	const text = "one two three\nfour five\n\n  set  in as it is, however wide\nsix"
	if got := term.Wrap(text, 10); got != "one two\nthree four\nfive\n\n  set  in as it is, however wide\nsix" {
		t.Errorf("%q", got)
	}
	if got := term.Wrap(text, 0); got != text {
		t.Errorf("%q", got)
	}
}
