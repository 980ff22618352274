package format

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"berth/shared/units"
)

// row is a mapping that is written field by field.
type row struct {
	content []*yaml.Node
}

func word(text string) *yaml.Node {
	node := &yaml.Node{}
	node.SetString(text) // quotes it where YAML would read something other than a text
	return node
}

// plain is a number, a flag or a moment. It is never quoted.
func plain(text string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: text} }

func (r *row) node(name string, value *yaml.Node) { r.content = append(r.content, word(name), value) }

// put writes a value. Fields that hold figures are not quoted.
func (r *row) put(name, value string) {
	switch name {
	case "seed", "at", "memory", "capacity", "inactive", "cpus", "vcpus", "available", "ksm_saved", "resident", "ballooned", "most",
		"maintenance",
		"in_flight", "stray", "young", "inventory_age", "telemetry_age",
		"moved_ago", "created_ago", "ended_ago", "observed_ago":
		r.node(name, plain(value))
	default:
		r.node(name, word(value))
	}
}

func (r *row) text(name, value string) {
	if value != "" {
		r.put(name, value)
	}
}

func (r *row) flag(name string, set bool) {
	if set {
		r.put(name, "true")
	}
}

func (r *row) size(name string, size *units.Bytes) {
	if size != nil {
		r.put(name, exactly(*size))
	}
}

func (r *row) number(name string, f *float64) {
	if f != nil {
		r.node(name, plain(strconv.FormatFloat(*f, 'g', -1, 64)))
	}
}

func (r *row) age(name string, age time.Duration) {
	if age > 0 {
		r.put(name, age.String())
	}
}

func (r *row) list(name string, rows []*yaml.Node) {
	if len(rows) > 0 {
		r.node(name, &yaml.Node{Kind: yaml.SequenceNode, Content: rows})
	}
}

// flow is the row on one line.
func (r *row) flow() *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle, Content: r.content}
}

func (r *row) document() ([]byte, error) {
	var out bytes.Buffer
	out.WriteString("# A scenario of 'berth simulate': write what you want to try under steps.\n")
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(&yaml.Node{Kind: yaml.MappingNode, Content: r.content}); err != nil {
		return nil, fmt.Errorf("write the scenario: %w", err)
	}
	return out.Bytes(), nil
}

// exactly prints a size without losing a byte.
func exactly(size units.Bytes) string {
	for _, unit := range []struct {
		size units.Bytes
		name string
	}{{units.TiB, "T"}, {units.GiB, "G"}, {units.MiB, "M"}, {units.KiB, "K"}} {
		if size >= unit.size && size%unit.size == 0 {
			return strconv.FormatInt(int64(size/unit.size), 10) + unit.name
		}
	}
	return strconv.FormatInt(int64(size), 10)
}
