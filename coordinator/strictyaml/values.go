package strictyaml

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

// Bounds of the figures and durations that are read. They catch slips of the pen, they are not policy.
const (
	MaxFigure = 1e12
	MaxTime   = 366 * 24 * time.Hour
)

// Scalar is the text of a plain value; false if it is none or empty.
func Scalar(node *yaml.Node) (string, bool) {
	return node.Value, node.Kind == yaml.ScalarNode && node.Tag != "!!null" && node.Value != ""
}

// Text is the text of a field; empty if the field is not there.
func (m *Mapping) Text(name string) string {
	value := m.Take(name)
	if value == nil {
		return ""
	}
	return m.TextOf(value, name)
}

// TextOf is the text of a value. Name is what problems call it.
func (m *Mapping) TextOf(value *yaml.Node, name string) string {
	text, is := Scalar(value)
	if !is {
		m.Refuse(value, "give one word or text", "%s of %s is %s, want a text", name, m.What, KindOf(value))
		return ""
	}
	return text
}

// Name is the text of a field that has to be there.
func (m *Mapping) Name(field, next string) string {
	value := m.Need(field, next)
	if value == nil {
		return ""
	}
	return m.TextOf(value, field)
}

// Word is the text of a field, which has to be one of the words.
func (m *Mapping) Word(name string, words ...string) string {
	text := m.Text(name)
	if text != "" && !slices.Contains(words, text) {
		m.Refuse(m.Value(name), "use "+strings.Join(words, ", "), "%s of %s is %q", name, m.What, text)
		return ""
	}
	return text
}

// Texts are the texts of a field that is a list of texts, or one text alone.
func (m *Mapping) Texts(name string) []string {
	value := m.Take(name)
	if value == nil {
		return nil
	}
	if value.Kind != yaml.SequenceNode {
		if text := m.TextOf(value, name); text != "" {
			return []string{text}
		}
		return nil
	}
	texts := make([]string, 0, len(value.Content))
	for _, one := range value.Content {
		if text := m.TextOf(one, name); text != "" {
			texts = append(texts, text)
		}
	}
	return texts
}

// List are the elements of a field that is a list.
func (m *Mapping) List(name string) []*yaml.Node {
	value := m.Take(name)
	if value == nil {
		return nil
	}
	if value.Kind != yaml.SequenceNode {
		m.Refuse(value, "begin each of its entries with a dash", "%s of %s is %s, want a list", name, m.What, KindOf(value))
		return nil
	}
	return value.Content
}

// Field is a name with its value.
type Field struct {
	Name  string
	Value *yaml.Node
}

// Pairs are the fields of a field that is a mapping whose names the file chooses, in the order of the file.
func (m *Mapping) Pairs(name string) []Field {
	value := m.Take(name)
	if value == nil {
		return nil
	}
	inner := m.Mapping(value, name+" of "+m.What)
	fields := make([]Field, 0, len(value.Content)/2)
	for i := 0; i+1 < len(value.Content) && value.Kind == yaml.MappingNode; i += 2 {
		if key := value.Content[i].Value; inner.At(key) == i {
			fields = append(fields, Field{key, value.Content[i+1]})
		}
	}
	return fields
}

// Flag is true or false, and tells whether the field is there.
func (m *Mapping) Flag(name string) (set, given bool) {
	value := m.Take(name)
	if value == nil {
		return false, false
	}
	if value.Kind != yaml.ScalarNode || value.Tag != "!!bool" {
		m.Refuse(value, "use true or false", "%s of %s is %s", name, m.What, KindOf(value))
		return false, false
	}
	return strings.EqualFold(value.Value, "true"), true
}

// Size is an amount of bytes; nil if the field is not there.
func (m *Mapping) Size(name string) *units.Bytes {
	value := m.Take(name)
	if value == nil {
		return nil
	}
	text, is := Scalar(value)
	size, err := units.ParseBytes(text)
	if !is || err != nil {
		m.Refuse(value, "give a size such as 512M or 4G", "%s of %s is %s, want a size", name, m.What, KindOf(value))
		return nil
	}
	return &size
}

// Number is a finite number that is not below least; nil if the field is not there.
func (m *Mapping) Number(name string, least float64) *float64 {
	value := m.Take(name)
	if value == nil {
		return nil
	}
	return m.NumberOf(value, name, least)
}

// NumberOf is the number of a value.
func (m *Mapping) NumberOf(value *yaml.Node, name string, least float64) *float64 {
	text, _ := Scalar(value)
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(f) || math.Abs(f) > MaxFigure || f < least {
		want := "a finite number"
		if least > -MaxFigure {
			want = fmt.Sprintf("a number of at least %g", least)
		}
		m.Refuse(value, "give "+want, "%s of %s is %s", name, m.What, KindOf(value))
		return nil
	}
	return &f
}

// Whole is a whole number from least to most; nil if the field is not there.
func (m *Mapping) Whole(name string, least, most int) *int {
	value := m.Take(name)
	if value == nil {
		return nil
	}
	return m.WholeOf(value, name, least, most)
}

// WholeOf is the whole number of a value.
func (m *Mapping) WholeOf(value *yaml.Node, name string, least, most int) *int {
	text, _ := Scalar(value)
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		m.Refuse(value, fmt.Sprintf("give a whole number from %d to %d", least, most), "%s of %s is %s", name, m.What, KindOf(value))
		return nil
	}
	return &n
}

// Seed is a whole number of 64 bits; nil if the field is not there.
func (m *Mapping) Seed(name string) *uint64 {
	value := m.Take(name)
	if value == nil {
		return nil
	}
	text, _ := Scalar(value)
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		m.Refuse(value, "give a whole number from 0 to 18446744073709551615", "%s of %s is %s", name, m.What, KindOf(value))
		return nil
	}
	return &seed
}

// Age is how long ago something was; nil if the field is not there.
func (m *Mapping) Age(name string) *time.Duration {
	value := m.Take(name)
	if value == nil {
		return nil
	}
	return m.AgeOf(value, name)
}

// AgeOf is the age that a value says.
func (m *Mapping) AgeOf(value *yaml.Node, name string) *time.Duration {
	text, _ := Scalar(value)
	age, err := time.ParseDuration(text)
	if err != nil || age < 0 {
		m.Refuse(value, "give how long ago it was, such as 2s or 1m30s", "%s of %s is %s", name, m.What, KindOf(value))
		return nil
	}
	return &age
}

// Lasting is how long something takes, a second at least; nil if the field is not there.
func (m *Mapping) Lasting(name string) *time.Duration {
	value := m.Take(name)
	if value == nil {
		return nil
	}
	return m.LastingOf(value, name, time.Second)
}

// LastingOf is the duration that a value says, least at least.
func (m *Mapping) LastingOf(value *yaml.Node, name string, least time.Duration) *time.Duration {
	text, _ := Scalar(value)
	d, err := time.ParseDuration(text)
	if err != nil || d < least || d > MaxTime || d%time.Second != 0 {
		m.Refuse(value, "give whole seconds, minutes or hours, such as 90s, 30m or 2h", "%s of %s is %s, want %v to %v",
			name, m.What, KindOf(value), least, MaxTime)
		return nil
	}
	return &d
}

// Moment is a moment of time; zero if the field is not there.
func (m *Mapping) Moment(name string) time.Time {
	value := m.Take(name)
	if value == nil {
		return time.Time{}
	}
	text, _ := Scalar(value)
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || at.Year() < 1970 || at.Year() > 2200 {
		m.Refuse(value, "give a moment such as 2026-03-01T12:00:00Z", "%s of %s is %s", name, m.What, KindOf(value))
		return time.Time{}
	}
	return at.UTC()
}
