package model

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// MaxTokenUses bounds how often one token may be used.
const MaxTokenUses = 500

// TokenUse is one use of a token for several.
type TokenUse struct {
	ID   string    `json:"id"` // of what it enrolled
	Name string    `json:"name"`
	At   time.Time `json:"at"`
}

// Left is how often the token may still be used.
func (t *Token) Left() int {
	if t.UsedBy != "" {
		return 0
	}
	return max(0, max(1, t.Uses)-len(t.Used))
}

// Use counts one use. A token for one use keeps only who has it, as every release reads it.
func (t *Token) Use(id, name string, at time.Time) {
	if t.Uses > 1 {
		t.Used = append(t.Used, TokenUse{ID: id, Name: name, At: at})
		if len(t.Used) < t.Uses {
			return
		}
	}
	t.UsedBy, t.UsedAt = id, at
}

// UsedIDs are the IDs of all that the token enrolled.
func (t *Token) UsedIDs() []string {
	var ids []string
	for _, use := range t.Used {
		ids = append(ids, use.ID)
	}
	if t.UsedBy != "" && !slices.Contains(ids, t.UsedBy) {
		ids = append(ids, t.UsedBy)
	}
	return ids
}

// Pattern tells that the token is for names of a pattern, not for one name.
func (t *Token) Pattern() bool { return strings.ContainsAny(t.Name, patternSigns) }

// Fits tells whether the token is for a name.
func (t *Token) Fits(name string) bool {
	if t.Name == "" || t.Name == name {
		return true
	}
	matches, err := path.Match(t.Name, name)
	return t.Pattern() && err == nil && matches
}

const patternSigns = "*?"

// ValidateNamePattern checks a name in which * stands for any characters, and ? for one. The error is an *InvalidError.
func ValidateNamePattern(thing, pattern string) error {
	plain := strings.NewReplacer("*", "x", "?", "x").Replace(pattern)
	if err := ValidateName(thing, plain); err != nil {
		return invalid(thing+" name", quoted(pattern), nameForm+"; in a token's name * stands for any of them, and ? for one")
	}
	return nil
}

// ValidateTokenUses checks how often a token is to be good. The error is an *InvalidError.
func ValidateTokenUses(uses int) error {
	if uses < 0 || uses > MaxTokenUses {
		return invalid("token", fmt.Sprintf("for %d uses", uses), fmt.Sprintf("1 to %d", MaxTokenUses))
	}
	return nil
}
