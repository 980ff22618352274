package model

import (
	"encoding/json"
	"testing"
	"time"
)

func TestATokenCountsItsUses(t *testing.T) {
	at := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	token := Token{Uses: 2}
	for i, id := range []string{"n1", "n2"} {
		if left := token.Left(); left != 2-i {
			t.Errorf("before use %d there are %d left", i+1, left)
		}
		token.Use(id, "hv"+id, at)
	}
	if token.Left() != 0 || token.UsedBy != "n2" || len(token.Used) != 2 || token.Used[0] != (TokenUse{"n1", "hvn1", at}) {
		t.Errorf("used twice it is %+v", token)
	}
	once := Token{}
	once.Use("n1", "hv1", at)
	if once.Left() != 0 || once.UsedBy != "n1" || once.Used != nil {
		t.Errorf("a token for one use is %+v after it", once)
	}
}

// As releases without uses wrote it.
func TestATokenOfAnEarlierReleaseIsGoodOnce(t *testing.T) {
	for text, want := range map[string]int{
		`{"hash":"a","purpose":"agent"}`: 1,
		`{"hash":"a","purpose":"agent","used_by":"n1","used_at":"2026-11-24T12:00:00Z"}`: 0,
		`{"hash":"a","purpose":"agent","uses":9,"used_by":"n1","used":[{"id":"n1"}]}`:    0, // an earlier release has used it
		`{"hash":"a","purpose":"agent","uses":3,"used":[{"id":"n1","name":"hv1"}]}`:      2,
	} {
		var token Token
		if err := json.Unmarshal([]byte(text), &token); err != nil || token.Left() != want {
			t.Errorf("%s: %d left (%v), want %d", text, token.Left(), err, want)
		}
	}
}

func TestATokenFitsNames(t *testing.T) {
	for _, c := range []struct {
		of, name string
		want     bool
	}{
		{"", "hv1", true},
		{"hv1", "hv1", true},
		{"hv1", "hv2", false},
		{"hv*", "hv12", true},
		{"hv*", "web", false},
		{"hv?", "hv1", true},
		{"hv?", "hv12", false},
		{"rack-*.example", "rack-7.example", true},
		{"hv", "hv1", false},
	} {
		if token := (&Token{Name: c.of}); token.Fits(c.name) != c.want {
			t.Errorf("a token for %q fits %q: %v", c.of, c.name, !c.want)
		}
	}
	for pattern, good := range map[string]bool{
		"hv*": true, "hv?": true, "*": true, "hv1": true, "hv[12]": false, "a/b*": false, `hv\\*`: false, "": false, "hv *": false,
	} {
		if err := ValidateNamePattern("agent", pattern); (err == nil) != good {
			t.Errorf("the pattern %q: %v", pattern, err)
		}
	}
	for uses, good := range map[int]bool{-1: false, 0: true, 1: true, MaxTokenUses: true, MaxTokenUses + 1: false} {
		if err := ValidateTokenUses(uses); (err == nil) != good {
			t.Errorf("%d uses: %v", uses, err)
		}
	}
}
