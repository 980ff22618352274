package roundtrip

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

type inner struct {
	Name  string   `json:"name"`
	Inner []inner  `json:"inner,omitempty"`
	Ratio *float64 `json:"ratio,omitempty"`
}

type record struct{ inner }

// Of each kind of field: what stays, what text leaves out, and what it does not tell apart.
func TestACopyIsWhatTextIsReadAs(t *testing.T) {
	type plain struct {
		Inner   inner            `json:"inner"`
		Texts   []string         `json:"texts"`
		Few     []string         `json:"few,omitempty"`
		Figures map[string][]int `json:"figures,omitempty"`
		At      time.Time        `json:"at,omitzero"`
		Share   float64          `json:"share,omitempty"`
		Pair    [2]inner         `json:"pair"`
	}
	half := 0.5
	for name, value := range map[string]plain{
		"nothing":   {},
		"empty":     {Texts: []string{}, Few: []string{}, Figures: map[string][]int{}, Share: math.Copysign(0, -1)},
		"something": {Inner: inner{"a", []inner{{Ratio: &half}}, &half}, Few: []string{"b"}, Figures: map[string][]int{"c": {}, "d": nil}},
		"now":       {At: time.Now()},
		"no time":   {At: time.Time{}.In(time.FixedZone("", 3600))},
	} {
		data, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		var want plain
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatal(err)
		}
		if got, same := Copy(&value); !same || !reflect.DeepEqual(*got, want) {
			t.Errorf("%s: %+v (%v), of %s is read %+v", name, got, same, data, want)
		}
	}
	value := plain{Texts: []string{"a"}, Figures: map[string][]int{"b": {1}}, Inner: inner{Ratio: &half}}
	got, _ := Copy(&value)
	value.Texts[0], value.Figures["b"][0], half = "changed", 2, 2
	if got.Texts[0] != "a" || got.Figures["b"][0] != 1 || *got.Inner.Ratio != 0.5 {
		t.Errorf("the copy has changed with the value: %+v", got)
	}
}

// What text could not hold as it is has no copy.
func TestWhatComesBackAsSomethingElseHasNoCopy(t *testing.T) {
	for name, value := range map[string]inner{
		"a text":         {Name: "broken \xff"},
		"a text further": {Inner: []inner{{}, {Name: "\xc3"}}},
	} {
		if got, same := Copy(&value); same {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if _, same := Copy(&map[string]int{"\xff": 1}); same {
		t.Error("a name of a map")
	}
	if at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.FixedZone("", 1800)); at.Location() != time.Local {
		if _, same := Copy(&at); same {
			t.Error("a time of another zone")
		}
	}
}

// A type that could not be copied truly is refused as a whole.
func TestUnknownTypesHaveNoCopy(t *testing.T) {
	type other struct {
		Text string `json:"text,string"`
	}
	type twice struct {
		A string `json:"a"`
		B string `json:"A"`
	}
	for want, of := range map[string]reflect.Type{
		"not known":           reflect.TypeFor[any](),
		"a text of its own":   reflect.TypeFor[json.RawMessage](),
		"keys":                reflect.TypeFor[map[int]string](),
		"no name":             reflect.TypeFor[struct{ Text string }](),
		"option":              reflect.TypeFor[other](),
		`written as "a"`:      reflect.TypeFor[twice](),
		"may be nothing":      reflect.TypeFor[*[]string](),
		"the field inner":     reflect.TypeFor[record](), // its name is not told to other packages
		"float32 is not know": reflect.TypeFor[float32](),
	} {
		if err := Check(of); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", of, err, want)
		}
	}
	if _, same := Copy(&other{}); same {
		t.Error("it is copied nevertheless")
	}
}
