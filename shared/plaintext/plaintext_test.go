package plaintext

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestALineIsShortAndPrinted(t *testing.T) {
	for in, want := range map[string]string{
		"no space":              "no space",
		"löschen 端末":            "löschen 端末",
		"a\nb\tc\r\n":           "a b c  ",
		"\x1b]0;own\x07\x1b[2J": "\ufffd]0;own\ufffd\ufffd[2J",
		"\u009b31mred":          "\ufffd31mred",
		"a\u202egpj.exe":        "a\ufffdgpj.exe",
		"\xff\xfe":              "\ufffd",
	} {
		if got := Line(in, 512); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	for _, text := range []string{
		strings.Repeat("x", 1<<20), strings.Repeat("端", 600), strings.Repeat("\x01", 600), strings.Repeat("\x01", 512),
	} {
		got := Line(text, 512)
		if len(got) > 512 || !utf8.ValidString(got) || !strings.HasSuffix(got, cut) {
			t.Errorf("%d bytes: %d bytes, %q", len(text), len(got), got[max(0, len(got)-20):])
		}
	}
}
