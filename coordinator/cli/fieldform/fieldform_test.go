package fieldform

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/testing/protocmp"

	"berth/coordinator/cli/term"
	"berth/coordinator/model"
	"berth/coordinator/schema"
	berthv1 "berth/shared/gen/berth/v1"
)

// A field that a message lacks could be given on the line, and would go nowhere.
func TestTheMessagesHaveEveryFieldThatIsGivenOrShown(t *testing.T) {
	has := func(message proto.Message, field string) bool {
		return message.ProtoReflect().Descriptor().Fields().ByName(protoreflect.Name(field)) != nil
	}
	check := func(name string, spec, given, shown bool) {
		created, changed, seen := proto.Message(&berthv1.NewVM{}), proto.Message(&berthv1.VMChange{}), proto.Message(&berthv1.VM{})
		if spec {
			created, changed, seen = &berthv1.VMSpec{}, &berthv1.VMSpec{}, &berthv1.VMSpec{}
		}
		if given && (!has(created, name) || !has(changed, name)) {
			t.Errorf("VM: %s has a flag, and a message of the API has no such field", name)
		}
		if shown && !has(seen, name) {
			t.Errorf("VM: %s has a title, and its message has no such field", name)
		}
	}
	for _, f := range schema.VM {
		check(f.Name, f.Spec, f.Help != "", f.Title != "")
	}
	for _, f := range schema.Node {
		if f.Help != "" && !has(&berthv1.SetNodeRequest{}, f.Name) || f.Title != "" && !has(&berthv1.Node{}, f.Name) {
			t.Errorf("node: a message of the API has no field %s", f.Name)
		}
	}
}

// traits are the fields of a VM that are no part of its specification.
func traits() []schema.Field[model.VM] {
	return slices.DeleteFunc(slices.Clone(schema.VM), func(f schema.Field[model.VM]) bool { return f.Spec })
}

func parsed(t *testing.T, line ...string) (*Flags[model.VM], *cobra.Command) {
	t.Helper()
	f, cmd := Of(traits()), &cobra.Command{Use: "vm"}
	f.Define(&term.App{}, cmd)
	if err := cmd.ParseFlags(line); err != nil {
		t.Fatal(err)
	}
	return f, cmd
}

func TestOnlyWhatStandsOnTheLineIsSent(t *testing.T) {
	line := []string{"--vdc", "shop", "--attach", "a", "--attach", "b", "--migration", "manual", "--ha", "--prefer", "n1,n2"}
	f, cmd := parsed(t, line...)
	made := &berthv1.NewVM{}
	if err := f.Make(cmd, made); err != nil {
		t.Fatal(err)
	}
	want := &berthv1.NewVM{
		Vdc: "shop", Disks: []string{"a", "b"}, Migration: "manual", Ha: true, Preferred: []string{"n1", "n2"},
	}
	if diff := cmp.Diff(want, made, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	change := &berthv1.VMChange{}
	if err := f.Change(cmd, change, []string{"offer", "nic"}); err != nil {
		t.Fatal(err)
	}
	wanted := &berthv1.VMChange{
		Vdc: new("shop"), Offer: new(""), Disks: &berthv1.Names{Names: []string{"a", "b"}}, Nics: &berthv1.Names{}, Migration: new("manual"),
		Ha: new(true), Preferred: &berthv1.Names{Names: []string{"n1", "n2"}},
	}
	if diff := cmp.Diff(wanted, change, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}

// A text that is kept as empty is sent as the word for it, and shown as nothing.
func TestTheWordForNothingIsNotShown(t *testing.T) {
	f, cmd := parsed(t)
	change := &berthv1.VMChange{}
	if err := f.Change(cmd, change, []string{"migration", "ha"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&berthv1.VMChange{Migration: new("automatic"), Ha: new(false)}, change, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	table := []schema.Field[model.VM]{*schema.Of(schema.VM, "migration"), *schema.Of(schema.VM, "labels")}
	table[0].Title = "moved by"
	for word, want := range map[string]string{"automatic": "", "never": "never"} {
		rows := Rows(table, &berthv1.VM{Migration: word, Labels: []string{"x", "y"}})
		if diff := cmp.Diff([][2]string{{"moved by", want}, {"labels", "x, y"}}, rows); diff != "" {
			t.Error(diff)
		}
	}
	if rows := Rows(table, &berthv1.VM{}); len(rows) != 0 {
		t.Errorf("of a VM of which nothing is said: %v", rows)
	}
}

func TestWhatTheCoordinatorWouldRefuseIsNotSent(t *testing.T) {
	for _, line := range [][]string{{"--migration", "maybe"}, {"--label", "x,x"}, {"--attach="}} {
		f, cmd := parsed(t, line...)
		if err := f.Make(cmd, &berthv1.NewVM{}); err == nil {
			t.Errorf("%v makes a VM", line)
		}
		if err := f.Change(cmd, &berthv1.VMChange{}, nil); err == nil {
			t.Errorf("%v changes a VM", line)
		}
	}
	f, cmd := parsed(t, "--vdc=")
	if err := f.Change(cmd, &berthv1.VMChange{}, nil); err == nil {
		t.Error("no name is taken for one")
	}
}
