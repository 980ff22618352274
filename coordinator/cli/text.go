package cli

import (
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/shared/units"
)

// none stands in a table where there is nothing or nothing is known.
const none = "-"

// clean takes out what would break a table or steer a terminal: names and messages come from many machines.
func clean(s string) string {
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

// cleanLines is clean that keeps lines.
func cleanLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = clean(lines[i])
	}
	return strings.Join(lines, "\n")
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// size prints bytes without a space, so that a table's columns can be told apart by programs.
func size(bytes int64) string { return strings.ReplaceAll(units.Bytes(bytes).String(), " ", "") }

// optionalSize prints none for what could not be read.
func optionalSize(bytes *int64) string {
	if bytes == nil {
		return none
	}
	return size(*bytes)
}

// number prints with at most two decimals.
func number(f float64) string {
	text := strconv.FormatFloat(f, 'f', 2, 64)
	text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	if text == "-0" {
		return "0"
	}
	return text
}

func optionalNumber(f *float64) string {
	if f == nil {
		return none
	}
	return number(*f)
}

// percent prints a ratio of 0 to 1.
func percent(ratio *float64) string {
	if ratio == nil {
		return none
	}
	return strconv.FormatFloat(*ratio*100, 'f', 0, 64) + "%"
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

func seconds(s float64) time.Duration {
	if s > math.MaxInt64/float64(time.Second) {
		return math.MaxInt64
	}
	return time.Duration(s * float64(time.Second))
}

// span prints a duration with the two units that matter: 185ms, 2.1s, 42s, 3m12s, 5h7m, 4d3h.
func span(d time.Duration) string {
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
	return span(d)
}

func optionalAge(s *float64) string {
	if s == nil {
		return none
	}
	return age(seconds(*s))
}

// since prints how long ago something was.
func (a *app) since(t *timestamppb.Timestamp) string {
	if t == nil {
		return none
	}
	return age(a.now().Sub(t.AsTime()))
}

// at prints a time in the reader's zone.
func (a *app) at(t *timestamppb.Timestamp) string {
	if t == nil {
		return none
	}
	return t.AsTime().In(a.now().Location()).Format("2006-01-02 15:04:05")
}

// enum turns VM_STATE_RUNNING into running.
func enum(value interface{ String() string }, prefix string) string {
	text := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(value.String(), prefix), "_", "-"))
	if text == "unspecified" {
		return none
	}
	return text
}
