package sim

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"berth/shared/units"
)

func scalar(node *yaml.Node) (string, bool) {
	return node.Value, node.Kind == yaml.ScalarNode && node.Tag != "!!null" && node.Value != ""
}

// text is a field's text; empty when it is not there.
func (m *mapping) text(name string) string {
	value := m.take(name)
	if value == nil {
		return ""
	}
	return m.textOf(value, name)
}

func (m *mapping) textOf(value *yaml.Node, name string) string {
	text, is := scalar(value)
	if !is {
		m.refuse(value, "give one word or text", "%s of %s is %s, want a text", name, m.what, kindOf(value))
		return ""
	}
	return text
}

// name is text for a name that has to be there.
func (m *mapping) name(field, next string) string {
	value := m.need(field, next)
	if value == nil {
		return ""
	}
	return m.textOf(value, field)
}

// word is a text that is one of those named.
func (m *mapping) word(name string, words ...string) string {
	text := m.text(name)
	if text != "" && !slices.Contains(words, text) {
		m.refuse(m.value(name), "use "+strings.Join(words, ", "), "%s of %s is %q", name, m.what, text)
		return ""
	}
	return text
}

// texts is a list of texts, or one text alone.
func (m *mapping) texts(name string) []string {
	value := m.take(name)
	if value == nil {
		return nil
	}
	if value.Kind != yaml.SequenceNode {
		if text := m.textOf(value, name); text != "" {
			return []string{text}
		}
		return nil
	}
	texts := make([]string, 0, len(value.Content))
	for _, one := range value.Content {
		if text := m.textOf(one, name); text != "" {
			texts = append(texts, text)
		}
	}
	return texts
}

// list are the elements of a field that is a list.
func (m *mapping) list(name string) []*yaml.Node {
	value := m.take(name)
	if value == nil {
		return nil
	}
	if value.Kind != yaml.SequenceNode {
		m.refuse(value, "begin each of its entries with a dash", "%s of %s is %s, want a list", name, m.what, kindOf(value))
		return nil
	}
	return value.Content
}

// field is a value by name, in the order of the file.
type field struct {
	name  string
	value *yaml.Node
}

// pairs are the fields of a field that is a mapping of names that the file chooses.
func (m *mapping) pairs(name string) []field {
	value := m.take(name)
	if value == nil {
		return nil
	}
	inner := m.mapping(value, name+" of "+m.what)
	fields := make([]field, 0, len(value.Content)/2)
	for i := 0; i+1 < len(value.Content) && value.Kind == yaml.MappingNode; i += 2 {
		if key := value.Content[i].Value; inner.at(key) == i {
			fields = append(fields, field{key, value.Content[i+1]})
		}
	}
	return fields
}

func (m *mapping) flag(name string) (set, given bool) {
	value := m.take(name)
	if value == nil {
		return false, false
	}
	if value.Kind != yaml.ScalarNode || value.Tag != "!!bool" {
		m.refuse(value, "use true or false", "%s of %s is %s", name, m.what, kindOf(value))
		return false, false
	}
	return strings.EqualFold(value.Value, "true"), true
}

func (m *mapping) size(name string) *units.Bytes {
	value := m.take(name)
	if value == nil {
		return nil
	}
	text, is := scalar(value)
	size, err := units.ParseBytes(text)
	if !is || err != nil {
		m.refuse(value, "give a size such as 512M or 4G", "%s of %s is %s, want a size", name, m.what, kindOf(value))
		return nil
	}
	return &size
}

// number is a finite number of at least least.
func (m *mapping) number(name string, least float64) *float64 {
	value := m.take(name)
	if value == nil {
		return nil
	}
	return m.numberOf(value, name, least)
}

func (m *mapping) numberOf(value *yaml.Node, name string, least float64) *float64 {
	text, _ := scalar(value)
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(f) || math.Abs(f) > maxFigure || f < least {
		want := "a finite number"
		if least > -maxFigure {
			want = fmt.Sprintf("a number of at least %g", least)
		}
		m.refuse(value, "give "+want, "%s of %s is %s", name, m.what, kindOf(value))
		return nil
	}
	return &f
}

func (m *mapping) whole(name string, least, most int) *int {
	value := m.take(name)
	if value == nil {
		return nil
	}
	return m.wholeOf(value, name, least, most)
}

func (m *mapping) wholeOf(value *yaml.Node, name string, least, most int) *int {
	text, _ := scalar(value)
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		m.refuse(value, fmt.Sprintf("give a whole number from %d to %d", least, most), "%s of %s is %s", name, m.what, kindOf(value))
		return nil
	}
	return &n
}

func (m *mapping) seed(name string) *uint64 {
	value := m.take(name)
	if value == nil {
		return nil
	}
	text, _ := scalar(value)
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		m.refuse(value, "give a whole number from 0 to 18446744073709551615", "%s of %s is %s", name, m.what, kindOf(value))
		return nil
	}
	return &seed
}

// age is how long ago something was.
func (m *mapping) age(name string) *time.Duration {
	value := m.take(name)
	if value == nil {
		return nil
	}
	return m.ageOf(value, name)
}

func (m *mapping) ageOf(value *yaml.Node, name string) *time.Duration {
	text, _ := scalar(value)
	age, err := time.ParseDuration(text)
	if err != nil || age < 0 {
		m.refuse(value, "give how long ago it was, such as 2s or 1m30s", "%s of %s is %s", name, m.what, kindOf(value))
		return nil
	}
	return &age
}

// lasting is how long something takes.
func (m *mapping) lasting(name string) *time.Duration {
	value := m.take(name)
	if value == nil {
		return nil
	}
	return m.lastingOf(value, name, time.Second)
}

func (m *mapping) lastingOf(value *yaml.Node, name string, least time.Duration) *time.Duration {
	text, _ := scalar(value)
	d, err := time.ParseDuration(text)
	if err != nil || d < least || d > maxTime || d%time.Second != 0 {
		m.refuse(value, "give whole seconds, minutes or hours, such as 90s, 30m or 2h", "%s of %s is %s, want %v to %v",
			name, m.what, kindOf(value), least, maxTime)
		return nil
	}
	return &d
}

func (m *mapping) moment(name string) time.Time {
	value := m.take(name)
	if value == nil {
		return time.Time{}
	}
	text, _ := scalar(value)
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || at.Year() < 1970 || at.Year() > 2200 {
		m.refuse(value, "give a moment such as 2026-03-01T12:00:00Z", "%s of %s is %s", name, m.what, kindOf(value))
		return time.Time{}
	}
	return at.UTC()
}
