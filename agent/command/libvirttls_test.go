package command

import (
	"errors"
	"io"
	"strings"
	"testing"
)

func TestNothingIsChangedWithoutAYes(t *testing.T) {
	for answer, want := range map[string]error{"y\n": nil, "Yes\n": nil, "\n": errRefused, "no\n": errRefused, "": errRefused} {
		if err := asked(io.Discard, strings.NewReader(answer), "?"); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", answer, err, want)
		}
	}
}
