package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"connectrpc.com/connect"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// hostile is what a name, an error or any other text of somebody else may have in it: what steers a terminal, other lines, marks that turn
// the rest around, and what a shell would run.
var hostile = "\x1b]0;owned\x07\x1b[2J\nvm/other  RUNNING\r\t\u009b31m\u202e\u2066\u2028\x00\x7f$(reboot)`id`;" + strings.Repeat("x", 300)

// taint adds it to each text of a message.
func taint(answer any) {
	message, is := answer.(proto.Message)
	if !is {
		return
	}
	taintMessage(message.ProtoReflect())
}

func taintMessage(m protoreflect.Message) {
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.Name() == "schema_version" || field.Name() == "next_page_token":
		case field.IsList() && field.Kind() == protoreflect.StringKind:
			for i := range value.List().Len() {
				value.List().Set(i, protoreflect.ValueOfString(value.List().Get(i).String()+hostile))
			}
		case field.IsList() && field.Message() != nil:
			for i := range value.List().Len() {
				taintMessage(value.List().Get(i).Message())
			}
		case field.IsMap():
			value.Map().Range(func(key protoreflect.MapKey, one protoreflect.Value) bool {
				switch field.MapValue().Kind() {
				case protoreflect.StringKind:
					value.Map().Set(key, protoreflect.ValueOfString(one.String()+hostile))
				case protoreflect.MessageKind:
					taintMessage(one.Message())
				}
				return true
			})
		case field.Kind() == protoreflect.StringKind:
			m.Set(field, protoreflect.ValueOfString(value.String()+hostile))
		case field.Message() != nil && !strings.HasPrefix(string(field.Message().FullName()), "google."):
			taintMessage(value.Message())
		}
		return true
	})
}

// steering is the first character of a text that a terminal obeys, or that shows what follows as something else.
func steering(text string) (rune, bool) {
	for _, r := range text {
		if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029') {
			return r, true
		}
	}
	return 0, false
}

// Whatever the names and texts of others are, no command of the command line hands them to the terminal, in no format, and no row becomes
// two.
func TestNoTextOfOthersSteersTheTerminal(t *testing.T) {
	honest, _ := clitest.NewSite(t, clitest.Steady())
	f := clitest.Steady()
	f.Taint = taint
	tainted, _ := clitest.NewSite(t, f)
	commands := goldenCommands()
	for _, name := range slices.Sorted(maps.Keys(commands)) {
		formats := []string{""} // as the command stands there; lists in every format, what shows one thing in JSON as well
		switch {
		case slices.Contains(commands[name], "-o"):
		case strings.HasSuffix(name, "-list"), name == "events", name == "status":
			formats = []string{"", "wide", "name", "json", "yaml"}
		case strings.Contains(name, "-show"):
			formats = []string{"", "json"}
		}
		for _, format := range formats {
			args := slices.Clone(commands[name])
			if format != "" {
				args = append(args, "-o", format)
			}
			ctx, end := context.WithTimeout(t.Context(), 5*time.Second)
			said := tainted.RunContext(ctx, args...)
			end()
			for _, text := range []string{said.Out, said.ErrOut} {
				if r, found := steering(text); found {
					at := strings.IndexRune(text, r)
					t.Errorf("berth %s prints %U: %.200q", strings.Join(args, " "), r, text[max(0, at-60):])
				}
			}
			if said.Exit != term.Done {
				continue
			}
			switch {
			case format == "json" && !json.Valid([]byte(said.Out)) && !strings.HasPrefix(name, "events"):
				t.Errorf("berth %s prints no JSON: %.200q", strings.Join(args, " "), said.Out)
			case format == "yaml":
				var document yaml.Node
				if err := yaml.Unmarshal([]byte(said.Out), &document); err != nil {
					t.Errorf("berth %s prints no YAML: %v", strings.Join(args, " "), err)
				}
			case strings.HasSuffix(name, "-list") && (format == "" || format == "wide" || format == "name"):
				want := honest.Run(args...)
				if strings.Count(said.Out, "\n") != strings.Count(want.Out, "\n") {
					t.Errorf("berth %s has other rows:\n%s", strings.Join(args, " "), said.Out)
				}
			}
		}
	}
}

// What is escaped for a terminal is the same text to a program.
func TestProgramsReadTheTextAsItIs(t *testing.T) {
	f := clitest.Steady()
	f.Taint = taint
	w, _ := clitest.NewSite(t, f)
	for format, read := range map[string]func([]byte, any) error{"json": json.Unmarshal, "yaml": yaml.Unmarshal} {
		var answer struct {
			Tokens []struct {
				Name string `json:"name" yaml:"name"`
			} `json:"tokens" yaml:"tokens"`
		}
		said := w.Run("token", "list", "-o", format)
		if err := read([]byte(said.Out), &answer); err != nil || len(answer.Tokens) == 0 || answer.Tokens[0].Name != "hv*"+hostile {
			t.Errorf("%s: %v, %+q", format, err, answer)
		}
	}
}

func TestNoErrorSteersTheTerminal(t *testing.T) {
	f := clitest.Steady()
	f.OnListNodes = func(*berthv1.ListNodesRequest) (*berthv1.ListNodesResponse, error) {
		return nil, rpc.Errorf(connect.CodeFailedPrecondition, &berthv1.ErrorDetail{
			Code: rpc.Conflict, Subject: "node/" + hostile, NextStep: "do " + hostile,
		}, "%w", errors.New("libvirt says "+hostile))
	}
	w, _ := clitest.NewSite(t, f)
	for _, args := range [][]string{
		{"node", "list"}, {"node", "list", "-o", "json"}, {"node", "list", "-o", "yaml"}, {"__complete", "node", "show", ""},
	} {
		said := w.Run(args...)
		for _, text := range []string{said.Out, said.ErrOut} {
			if r, found := steering(text); found {
				t.Errorf("berth %v prints %U: %q", args, r, text)
			}
		}
	}
	if said := w.Run("node", "show", "a"+hostile); said.Exit == term.Done {
		t.Error("a node of that name is there")
	} else if r, found := steering(said.Out + said.ErrOut); found {
		t.Errorf("an argument is printed with %U: %q", r, said.ErrOut)
	}
}

// A shell completes with what it is given.
func TestNoCompletionHasWhatAShellOrATerminalObeys(t *testing.T) {
	f := clitest.Steady()
	f.Taint = taint
	w, _ := clitest.NewSite(t, f)
	for _, noun := range []string{
		"vm", "node", "disk", "pool", "network", "policy", "customer", "vdc", "cluster", "identity", "offer", "group", "plan",
	} {
		said := w.Run("__complete", noun, "show", "")
		if r, found := steering(said.Out); found {
			t.Errorf("completing %s prints %U: %.300q", noun, r, said.Out)
		}
		if strings.ContainsAny(said.Out, "$`") {
			t.Errorf("completing %s offers what a shell runs: %.300q", noun, said.Out)
		}
	}
}
