package term

import (
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"berth/coordinator/model"
	"berth/shared/units"
)

// StandardInput is what problems call a document that came from there.
const StandardInput = "<stdin>"

// CheckLimit checks the flag --limit.
func CheckLimit(cmd *cobra.Command, limit int32) error {
	if limit < 1 || limit > MaxLimit {
		return Usagef(cmd, "--limit %d: want 1 to %d", limit, MaxLimit)
	}
	return nil
}

// CheckNames refuses lists with empty names, and names that are there twice.
func CheckNames(cmd *cobra.Command, flag string, names []string) error {
	if cmd.Flags().Changed(flag) && len(names) == 0 {
		return Usagef(cmd, "--%s: a name is missing", flag)
	}
	for i, name := range names {
		switch {
		case strings.TrimSpace(name) == "":
			return Usagef(cmd, "--%s: a name is empty", flag)
		case slices.Contains(names[:i], name):
			return Usagef(cmd, "--%s %s: it is there twice", flag, name)
		}
	}
	return nil
}

// ParseFigure reads a value or a weight. The error is the coordinator's.
func ParseFigure(field, text string) (float64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil && f == 0 {
		return 0, &model.InvalidError{Field: field, Value: strconv.Quote(text), Want: "a finite number from -1e9 to 1e9"}
	}
	return f, model.ValidateKeyFigure(field, f)
}

// BandwidthFlag reads --bandwidth: bytes a second, 0 when the flag is not there.
func BandwidthFlag(cmd *cobra.Command, text string) (int64, error) {
	if !cmd.Flags().Changed("bandwidth") {
		return 0, nil
	}
	limit, err := units.ParseBytes(strings.TrimSuffix(text, "/s"))
	if err != nil {
		return 0, Usagef(cmd, "--bandwidth: %w", err)
	}
	if limit < units.MiB {
		return 0, Usagef(cmd, "--bandwidth %s: want at least %v a second", text, units.MiB)
	}
	return int64(limit), nil
}

// StringFlag is a flag's text, with the word that help shows in its place.
type StringFlag struct{ Text, Word string }

func (w *StringFlag) String() string { return w.Text }

// Set takes any text.
func (w *StringFlag) Set(text string) error { w.Text = text; return nil }

// Type is the word that help shows for the value.
func (w *StringFlag) Type() string { return w.Word }

// CheckUnset refuses to take away what is no flag of those that can go, and what the same line sets.
func CheckUnset(cmd *cobra.Command, unset, removable []string) error {
	for _, flag := range unset {
		switch {
		case !slices.Contains(removable, flag):
			return Usagef(cmd, "--unset %s: use %s", flag, strings.Join(removable, ", "))
		case cmd.Flags().Changed(flag):
			return Usagef(cmd, "--%[1]s and --unset %[1]s exclude each other", flag)
		}
	}
	return nil
}

// ParseMemory reads a size that a VM can have.
func ParseMemory(cmd *cobra.Command, text string) (int64, error) {
	bytes, err := units.ParseBytes(text)
	if err != nil {
		return 0, Usagef(cmd, "--memory: %w", err)
	}
	if err := model.ValidateSpec(model.VMSpec{Memory: bytes, VCPUs: 1}); err != nil {
		return 0, Usage(cmd, err)
	}
	return int64(bytes), nil
}

// ChangedFlags are those of the flags that stand on the line.
func ChangedFlags(cmd *cobra.Command, flags []string) []string {
	var given []string
	for _, flag := range flags {
		if cmd.Flags().Changed(flag) {
			given = append(given, "--"+flag)
		}
	}
	return given
}
