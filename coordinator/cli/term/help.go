package term

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
)

// FlagError is what a flag's bad value is told as: with the flag and an example, and not in the words of the library that reads it.
func FlagError(cmd *cobra.Command, err error) error {
	var wrong *pflag.InvalidValueError
	if !errors.As(err, &wrong) {
		return Usage(cmd, err)
	}
	want := ""
	switch kind := strings.TrimSuffix(wrong.GetFlag().Value.Type(), "Slice"); kind {
	case "int", "int8", "int16", "int32", "int64":
		want = "a whole number, for instance 4"
	case "uint", "uint8", "uint16", "uint32", "uint64", "count":
		want = "a whole number from 0, for instance 4"
	case "float32", "float64":
		want = "a number, for instance 1.5"
	case "duration":
		want = "a time with its unit, for instance 90s, 5m or 1h30m"
	case "bool":
		want = "true or false"
	default:
		return Usage(cmd, err)
	}
	if errors.Is(wrong, strconv.ErrRange) {
		want += ", that is nearer to 0"
	}
	return Usagef(cmd, "invalid argument %q for %q flag: want %s", wrong.GetValue(), "--"+wrong.GetFlag().Name, want)
}

// HelpWidth is how many columns help may have where it is written; 0: any number.
func HelpWidth(out any) int {
	file, isFile := out.(*os.File)
	if !isFile {
		return 0
	}
	columns, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return max(columns, leastHelp)
}

// leastHelp is the narrowest that help is made: below it the words of flags have no room beside their names.
const leastHelp = 60

// Wrap breaks text between words so that no line is wider, and joins the lines of a paragraph anew. Lines that begin with a blank stay as
// they are: they are examples and tables. A width of 0 changes nothing.
func Wrap(text string, width int) string {
	if width <= 0 {
		return text
	}
	var out, paragraph []string
	flush := func() {
		line := ""
		for _, word := range strings.Fields(strings.Join(paragraph, " ")) {
			switch {
			case line == "":
				line = word
			case len([]rune(line))+1+len([]rune(word)) > width:
				out, line = append(out, line), word
			default:
				line += " " + word
			}
		}
		if line != "" {
			out = append(out, line)
		}
		paragraph = nil
	}
	for line := range strings.SplitSeq(text, "\n") {
		if line != "" && line[0] != ' ' && line[0] != '\t' {
			paragraph = append(paragraph, line)
			continue
		}
		flush()
		out = append(out, line)
	}
	flush()
	return strings.Join(out, "\n")
}

// WrapHelp has the help of all commands fit the terminal that it is written to. Usage is the template of what stands below the words.
func WrapHelp(root *cobra.Command, usage string) {
	root.SetUsageTemplate(usage)
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		out := cmd.OutOrStdout()
		width := HelpWidth(out)
		root.SetUsageTemplate(strings.ReplaceAll(usage, ".FlagUsages ", fmt.Sprintf(".FlagUsagesWrapped %d ", width)))
		words := cmd.Long
		if words == "" {
			words = cmd.Short
		}
		if words = strings.TrimSpace(words); words != "" {
			fmt.Fprint(out, Wrap(words, width), "\n\n")
		}
		fmt.Fprint(out, cmd.UsageString())
	})
}
