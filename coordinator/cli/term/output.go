package term

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
	"google.golang.org/protobuf/proto"

	"berth/shared/rpc"
)

// Brief is how many candidates, and how many refused nodes, an explanation shows that is not full.
const Brief = 12

// Format is how a result is printed.
type Format string

// The formats.
const (
	AsTable Format = "table"
	AsWide  Format = "wide"
	AsJSON  Format = "json"
	AsYAML  Format = "yaml"
	AsName  Format = "name"
)

var formats = []string{string(AsTable), string(AsWide), string(AsJSON), string(AsYAML), string(AsName)}

// String is the format as -o takes it. With Set and Type it makes Format the value of a flag.
func (f *Format) String() string { return string(*f) }

// Set takes one of the formats.
func (f *Format) Set(s string) error {
	if !slices.Contains(formats, s) {
		return fmt.Errorf("use %s", strings.Join(formats, ", "))
	}
	*f = Format(s)
	return nil
}

// Type is the word that help shows for the value.
func (f *Format) Type() string { return "FORMAT" }

// Structured formats are for programs, which want errors in the same kind.
func (f Format) Structured() bool { return f == AsJSON || f == AsYAML }

// Result is what a command found or did, for every format.
type Result struct {
	Message proto.Message            // json and yaml
	Names   []string                 // name: NOUN/NAME, one a line
	Text    func(p *Page, wide bool) // table and wide
}

// Print writes a result in the format that was asked for.
func (a *App) Print(cmd *cobra.Command, r Result) error {
	var out bytes.Buffer // so that a failure prints nothing in half
	switch a.Format {
	case AsJSON, AsYAML:
		encoded, err := encode(a.Format, r.Message)
		if err != nil {
			return err
		}
		out.Write(encoded)
	case AsName:
		for _, name := range r.Names {
			fmt.Fprintln(&out, Clean(name))
		}
	default:
		r.Text(&Page{Out: &out, Headless: a.NoHeaders}, a.Format == AsWide)
	}
	_, err := cmd.OutOrStdout().Write(out.Bytes())
	return err
}

// Note tells people one line beside the answer.
func (a *App) Note(cmd *cobra.Command, note string) {
	if !a.Quiet && !a.Format.Structured() {
		fmt.Fprintln(cmd.ErrOrStderr(), Clean(note))
	}
}

// NoteIfEmpty tells, where a table would have no row, what that means and what to do.
func (a *App) NoteIfEmpty(cmd *cobra.Command, rows int, note string) {
	if rows == 0 && !a.Quiet && (a.Format == AsTable || a.Format == AsWide) {
		fmt.Fprintln(cmd.ErrOrStderr(), note)
	}
}

// PrintLocal is print for what is no message of the API.
func (a *App) PrintLocal(cmd *cobra.Command, value any, names []string, show func(*Page, bool)) error {
	if a.Format.Structured() {
		compact, err := json.Marshal(value)
		if err != nil {
			return fmt.Errorf("encode the answer: %w", err)
		}
		out, err := Indent(a.Format, compact)
		if err != nil {
			return err
		}
		_, err = cmd.OutOrStdout().Write(out)
		return err
	}
	return a.Print(cmd, Result{Names: names, Text: show})
}

// encode renders the API's own message.
func encode(f Format, message proto.Message) ([]byte, error) {
	compact, err := rpc.MarshalJSON(message)
	if err != nil {
		return nil, fmt.Errorf("encode the answer: %w", err)
	}
	return Indent(f, compact)
}

// Indent lays out JSON, or the same as YAML. protojson's own layout varies from build to build on purpose.
func Indent(f Format, compact []byte) ([]byte, error) {
	var out bytes.Buffer
	compact = Escaped(compact) // YAML would not even be read with some of it
	if f == AsJSON {
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
	return Escaped(out.Bytes()), nil
}

// unquote takes JSON's brackets and quotes away. Where text needs quotes the encoder puts them back; what is escaped stands in quotes.
func unquote(node *yaml.Node) {
	node.Style = 0
	if node.Kind == yaml.ScalarNode && strings.ContainsFunc(node.Value, steers) {
		node.Style = yaml.DoubleQuotedStyle
	}
	for _, child := range node.Content {
		unquote(child)
	}
}

// Page lays out a result as text for people.
type Page struct {
	Out      io.Writer
	Headless bool
}

// Line writes a line.
func (p *Page) Line(format string, a ...any) { fmt.Fprintln(p.Out, Clean(fmt.Sprintf(format, a...))) }

// Blank writes an empty line.
func (p *Page) Blank() { fmt.Fprintln(p.Out) }

// Table writes rows below headings, aligned, with nothing but spaces between columns.
func (p *Page) Table(headings []string, rows [][]string) { p.Indented("", headings, rows) }

// Indented is Table with each line indented.
func (p *Page) Indented(indent string, headings []string, rows [][]string) {
	if len(rows) > 0 && headings != nil && !p.Headless {
		rows = append([][]string{headings}, rows...)
	}
	var aligned bytes.Buffer
	columns := tabwriter.NewWriter(&aligned, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = Clean(cell)
		}
		fmt.Fprintf(columns, "%s%s\n", indent, strings.Join(cells, "\t"))
	}
	_ = columns.Flush() // a bytes.Buffer does not fail
	for line := range strings.Lines(aligned.String()) {
		fmt.Fprintln(p.Out, strings.TrimRight(line, " \n"))
	}
}

// Fields writes names and values. Values that are empty are left out.
func (p *Page) Fields(indent string, pairs ...[2]string) {
	var rows [][]string
	for _, pair := range pairs {
		if pair[1] != "" {
			rows = append(rows, pair[:])
		}
	}
	p.Indented(indent, nil, rows)
}
