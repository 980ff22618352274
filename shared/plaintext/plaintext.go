// Package plaintext makes a line of text out of what others have said: of bounded length, and without what a terminal would obey.
package plaintext

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// cut is what a text ends with that was longer.
const cut = " … (cut)"

// Line is a text of at most so many bytes on one line. Blanks and line ends become blanks, and what is not printed, or changes how
// the rest is shown (control characters, marks of direction, broken encoding), becomes U+FFFD. What was longer says so at its end.
func Line(text string, most int) string {
	if len(text) <= most && Clean(text) {
		return text
	}
	long := len(text) > most
	if long {
		end := max(most-len(cut), 0)
		for end > 0 && !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end]
	}
	text = Printable(text)
	for len(text) > most || long && len(text)+len(cut) > most && text != "" {
		_, size := utf8.DecodeLastRuneInString(text) // U+FFFD takes more than what it stands for
		text, long = text[:len(text)-size], true
	}
	if long {
		text += cut
	}
	return text
}

// Printable is a text of any length on one line, like Line.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', r == '\r':
			return ' '
		case !printed(r):
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(text, string(utf8.RuneError)))
}

// Clean tells that a text has nothing but printed characters.
func Clean(text string) bool {
	for i := range len(text) {
		if c := text[i]; c >= utf8.RuneSelf {
			return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !printed(r) })
		} else if c < ' ' || c == 0x7f {
			return false
		}
	}
	return true
}

// printed tells that a character is shown as itself, or joins others to one as many scripts do. Control characters are not, and neither are
// those that turn what follows around or end a line.
func printed(r rune) bool {
	return !unicode.Is(unicode.Cc, r) && !unicode.Is(unicode.Bidi_Control, r) && r != '\u2028' && r != '\u2029'
}
