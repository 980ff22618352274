package capability

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	berthv1 "berth/shared/gen/berth/v1"
)

// What the protocol names is what agents of this release tell.
func TestTheProtocolNamesTheCapabilities(t *testing.T) {
	named := map[string]bool{}
	seen := map[protoreflect.FullName]bool{}
	var walk func(protoreflect.MessageDescriptor)
	walk = func(message protoreflect.MessageDescriptor) {
		if seen[message.FullName()] {
			return
		}
		seen[message.FullName()] = true
		for i := range message.Fields().Len() {
			field := message.Fields().Get(i)
			if name := Of(field); name != "" {
				named[name] = true
			}
			if field.Message() != nil {
				walk(field.Message())
			}
		}
	}
	walk((&berthv1.SessionResponse{}).ProtoReflect().Descriptor())
	for name := range named {
		if !slices.Contains(Names(), name) {
			t.Errorf("a field needs %q, and no agent tells that", name)
		}
	}
	for _, name := range Names() {
		if !named[name] {
			t.Errorf("no field needs %q", name)
		}
	}
}

func TestWhatAMessageNeeds(t *testing.T) {
	plain := &berthv1.Command{Action: &berthv1.Command_Start{Start: &berthv1.StartCommand{}}}
	move := &berthv1.Command{Action: &berthv1.Command_Migrate{Migrate: &berthv1.MigrateCommand{}}}
	along := &berthv1.Command{Action: &berthv1.Command_Migrate{Migrate: &berthv1.MigrateCommand{CopyStorage: true}}}
	for _, c := range []struct {
		message *berthv1.Command
		told    []string
		want    []string
	}{
		{plain, nil, nil},
		{move, nil, []string{"accounted-ends"}},
		{along, nil, []string{"accounted-ends", "copied-disks"}},
		{along, []string{"accounted-ends", "of a later release"}, []string{"copied-disks"}},
		{along, Names(), nil},
	} {
		if got := Lacks(c.told, c.message); !slices.Equal(got, c.want) {
			t.Errorf("an agent with %v lacks %v for %v, want %v", c.told, got, c.message, c.want)
		}
	}
	if missing := Missing(nil); !slices.Equal(missing, Names()) {
		t.Errorf("an agent that tells nothing lacks %v", missing)
	}
}
