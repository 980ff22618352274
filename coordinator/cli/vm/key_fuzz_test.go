package vm

import (
	"math"
	"testing"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"berth/coordinator/cli/term"
	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
)

// Whatever stands on the line is refused, or is a key within its ranges that prints as what reads the same.
func FuzzKey(f *testing.F) {
	for _, seed := range []string{
		"Group1=1@-100", "_SSD=1@50", "#RAM=0@40", "K=@1", "K=1@", "=1@1", "K=NaN@1", "K=1@Inf", "K=1e999@1", "K=0x1p-2@1",
		"K=-0@1", "a=b=1@2", "a@b=1@2", "K=1@1@1", "K=1_0@1", "\xff=1@1",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		read := func(text string) (*berthv1.Key, bool) {
			flags := keyFlag{texts: []string{text}}
			keys, err := flags.keys(&cobra.Command{Use: "start"})
			if (err == nil) != (len(keys) == 1) {
				t.Fatalf("%q: %d keys and error %v", text, len(keys), err)
			}
			if err != nil {
				return nil, false
			}
			return keys[0], true
		}
		key, good := read(text)
		if !good {
			return
		}
		if model.IsSpecialKey(key.GetName()) || math.Abs(key.GetValue()) > model.MaxKeyFigure || math.Abs(key.GetWeight()) > model.MaxKeyFigure {
			t.Fatalf("%q is taken for %v", text, key)
		}
		again, good := read(key.GetName() + "=" + term.Exact(key.GetValue()) + "@" + term.Exact(key.GetWeight()))
		if !good || !proto.Equal(key, again) {
			t.Fatalf("%q is read as %v, and what that prints as %v", text, key, again)
		}
	})
}
