package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// format is how a result is printed.
type format string

const (
	asTable format = "table"
	asWide  format = "wide"
	asJSON  format = "json"
	asYAML  format = "yaml"
	asName  format = "name"
)

var formats = []string{string(asTable), string(asWide), string(asJSON), string(asYAML), string(asName)}

// String, Set and Type make it a flag.
func (f *format) String() string { return string(*f) }

func (f *format) Set(s string) error {
	if !slices.Contains(formats, s) {
		return fmt.Errorf("use %s", strings.Join(formats, ", "))
	}
	*f = format(s)
	return nil
}

func (f *format) Type() string { return "FORMAT" }

// structured formats are for programs, which want errors in the same kind.
func (f format) structured() bool { return f == asJSON || f == asYAML }

// result is what a command found or did, for every format.
type result struct {
	message proto.Message            // json and yaml
	names   []string                 // name: NOUN/NAME, one a line
	text    func(p *page, wide bool) // table and wide
}

func (a *app) print(cmd *cobra.Command, r result) error {
	var out bytes.Buffer // so that a failure prints nothing in half
	switch a.format {
	case asJSON, asYAML:
		encoded, err := encode(a.format, r.message)
		if err != nil {
			return err
		}
		out.Write(encoded)
	case asName:
		for _, name := range r.names {
			fmt.Fprintln(&out, clean(name))
		}
	default:
		r.text(&page{out: &out, headless: a.noHeaders}, a.format == asWide)
	}
	_, err := cmd.OutOrStdout().Write(out.Bytes())
	return err
}

// nothing tells, where a table would have no row, what that means and what to do.
func (a *app) nothing(cmd *cobra.Command, rows int, note string) {
	if rows == 0 && !a.quiet && (a.format == asTable || a.format == asWide) {
		fmt.Fprintln(cmd.ErrOrStderr(), note)
	}
}

// printLocal is print for what is no message of the API.
func (a *app) printLocal(cmd *cobra.Command, value any, names []string, show func(*page, bool)) error {
	if a.format.structured() {
		compact, err := json.Marshal(value)
		if err != nil {
			return fmt.Errorf("encode the answer: %w", err)
		}
		out, err := indent(a.format, compact)
		if err != nil {
			return err
		}
		_, err = cmd.OutOrStdout().Write(out)
		return err
	}
	return a.print(cmd, result{names: names, text: show})
}

// encode renders the API's own message.
func encode(f format, message proto.Message) ([]byte, error) {
	compact, err := protojson.Marshal(message)
	if err != nil {
		return nil, fmt.Errorf("encode the answer: %w", err)
	}
	return indent(f, compact)
}

// indent lays out JSON, or the same as YAML. protojson's own layout varies from build to build on purpose.
func indent(f format, compact []byte) ([]byte, error) {
	var out bytes.Buffer
	if f == asJSON {
		if err := json.Indent(&out, compact, "", "  "); err != nil {
			return nil, fmt.Errorf("encode the answer: %w", err)
		}
		out.WriteByte('\n')
		return out.Bytes(), nil
	}
	var node yaml.Node // JSON is YAML; a node keeps the order of the keys
	if err := yaml.Unmarshal(compact, &node); err != nil {
		return nil, fmt.Errorf("encode the answer: %w", err)
	}
	unquote(&node)
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(&node); err != nil {
		return nil, fmt.Errorf("encode the answer: %w", err)
	}
	return out.Bytes(), nil
}

// unquote takes JSON's brackets and quotes away. Where text needs quotes the encoder puts them back.
func unquote(node *yaml.Node) {
	node.Style = 0
	for _, child := range node.Content {
		unquote(child)
	}
}

// text writes for people.
type page struct {
	out      io.Writer
	headless bool
}

func (p *page) line(format string, a ...any) { fmt.Fprintln(p.out, clean(fmt.Sprintf(format, a...))) }

func (p *page) blank() { fmt.Fprintln(p.out) }

// table writes rows below headings, aligned, with nothing but spaces between columns.
func (p *page) table(headings []string, rows [][]string) { p.indented("", headings, rows) }

func (p *page) indented(indent string, headings []string, rows [][]string) {
	if len(rows) > 0 && headings != nil && !p.headless {
		rows = append([][]string{headings}, rows...)
	}
	var aligned bytes.Buffer
	columns := tabwriter.NewWriter(&aligned, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = clean(cell)
		}
		fmt.Fprintf(columns, "%s%s\n", indent, strings.Join(cells, "\t"))
	}
	_ = columns.Flush() // a bytes.Buffer does not fail
	for line := range strings.Lines(aligned.String()) {
		fmt.Fprintln(p.out, strings.TrimRight(line, " \n"))
	}
}

// fields writes names and values. Values that are empty are left out.
func (p *page) fields(indent string, pairs ...[2]string) {
	var rows [][]string
	for _, pair := range pairs {
		if pair[1] != "" {
			rows = append(rows, pair[:])
		}
	}
	p.indented(indent, nil, rows)
}
