package term

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"berth/shared/units"
)

// Prefixed makes the names that -o name prints.
func Prefixed[T any](noun string, things []T, name func(T) string) []string {
	names := make([]string, 0, len(things))
	for _, thing := range things {
		names = append(names, noun+name(thing))
	}
	return names
}

// Exact prints a value or a weight as it was set: comparing is what it is for.
func Exact(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// Article puts a or an before a noun.
func Article(noun string) string {
	if strings.ContainsAny(noun[:1], "aeiou") {
		return "an " + noun
	}
	return "a " + noun
}

// Known is for a figure that may not have been readable.
func Known(bytes *int64) string {
	if bytes == nil {
		return "unknown"
	}
	return units.Bytes(*bytes).String()
}

// Dense takes the blanks out of a cell, so that programs can tell columns apart.
func Dense(s string) string { return strings.ReplaceAll(s, " ", "") }

// None stands in a table where there is nothing or nothing is known.
const None = "-"

// Clean takes out what would break a table or steer a terminal: names and messages come from many machines.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' || r == '\n' || r == '\r' {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

// CleanLines is clean that keeps lines.
func CleanLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = Clean(lines[i])
	}
	return strings.Join(lines, "\n")
}

// Escaped is JSON, or a text in double quotes of YAML, with what would steer a terminal by its number: programs read the same text.
func Escaped(text []byte) []byte {
	if !bytes.ContainsFunc(text, steers) {
		return text
	}
	out := make([]byte, 0, len(text)+64)
	for _, r := range string(text) {
		if steers(r) {
			out = fmt.Appendf(out, "\\u%04x", r) // none is beyond four digits
		} else {
			out = utf8.AppendRune(out, r)
		}
	}
	return out
}

// steers tells of a character that a terminal obeys, or that shows what follows as something else. The ends of lines are not among them.
func steers(r rune) bool {
	return r != '\n' && (unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029')
}

// Size prints bytes without a space, so that a table's columns can be told apart by programs.
func Size(bytes int64) string { return strings.ReplaceAll(units.Bytes(bytes).String(), " ", "") }

// OptionalSize prints none for what could not be read.
func OptionalSize(bytes *int64) string {
	if bytes == nil {
		return None
	}
	return Size(*bytes)
}

// OptionalNumber prints None for what is not known.
func OptionalNumber(f *float64) string {
	if f == nil {
		return None
	}
	return units.Figure(*f)
}

// Percent prints a ratio of 0 to 1.
func Percent(ratio *float64) string {
	if ratio == nil {
		return None
	}
	return strconv.FormatFloat(*ratio*100, 'f', 0, 64) + "%"
}

// Pressure prints shares of time, 0 to 100, in which some and all of something stalled.
func Pressure(some, full float64) string {
	return fmt.Sprintf("some %s%%, full %s%% of the last 10 s", units.Figure(some), units.Figure(full))
}

// Count is a number of things, with the plural where it belongs.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// Seconds is a duration from seconds. What is too long for a duration becomes the longest one.
func Seconds(s float64) time.Duration {
	if s > math.MaxInt64/float64(time.Second) {
		return math.MaxInt64
	}
	return time.Duration(s * float64(time.Second))
}

// Span prints a duration with the two units that matter: 185ms, 2.1s, 42s, 3m12s, 5h7m, 4d3h.
func Span(d time.Duration) string {
	if d < 0 {
		d = 0
	}
	switch {
	case d < time.Second:
		return strconv.FormatInt(d.Round(time.Millisecond).Milliseconds(), 10) + "ms"
	case d < 10*time.Second:
		return strings.TrimSuffix(strconv.FormatFloat(d.Seconds(), 'f', 1, 64), ".0") + "s"
	case d < time.Minute:
		return strconv.Itoa(int(d.Seconds())) + "s"
	case d < time.Hour:
		return two(int(d.Minutes()), "m", int(d.Seconds())%60, "s")
	case d < 24*time.Hour:
		return two(int(d.Hours()), "h", int(d.Minutes())%60, "m")
	default:
		return two(int(d.Hours())/24, "d", int(d.Hours())%24, "h")
	}
}

func two(major int, majorUnit string, minor int, minorUnit string) string {
	text := strconv.Itoa(major) + majorUnit
	if minor > 0 {
		text += strconv.Itoa(minor) + minorUnit
	}
	return text
}

// age prints how old a figure is: whole seconds.
func age(d time.Duration) string {
	if d < time.Minute {
		return strconv.Itoa(int(max(d, 0).Round(time.Second).Seconds())) + "s"
	}
	return Span(d)
}

// OptionalAge prints None for an age that is not known.
func OptionalAge(s *float64) string {
	if s == nil {
		return None
	}
	return age(Seconds(*s))
}

// Enum turns VM_STATE_RUNNING into running.
func Enum(value interface{ String() string }, prefix string) string {
	text := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(value.String(), prefix), "_", "-"))
	if text == "unspecified" {
		return None
	}
	return text
}

// Differs leaves out what only repeats something.
func Differs(s, from string) string {
	if s == from {
		return ""
	}
	return s
}
