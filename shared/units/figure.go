package units

import (
	"strconv"
	"strings"
)

// Figure prints a number for people, with at most two decimals.
func Figure(f float64) string {
	text := strconv.FormatFloat(f, 'f', 2, 64)
	text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	if text == "-0" {
		return "0"
	}
	return text
}
