package vm

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/keyform"
	"berth/coordinator/cli/term"
	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
)

// keyFlag gives a new VM keys of its own.
type keyFlag struct{ texts []string }

func (f *keyFlag) flag(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.texts, "key", nil, "customer key of its own: `NAME=VALUE@WEIGHT`; repeat for more")
	term.Complete(cmd, "key", cobra.NoFileCompletions)
}

// keys reads --key NAME=VALUE@WEIGHT.
func (f *keyFlag) keys(cmd *cobra.Command) ([]*berthv1.Key, error) {
	var keys []*berthv1.Key
	for _, text := range f.texts {
		at := strings.LastIndex(text, "@")
		if at < 0 {
			return nil, term.Usagef(cmd, "--key %s: want NAME=VALUE@WEIGHT, for instance Group1=1@-100", text)
		}
		key, err := keyform.Parse(string(model.KindVM), text[:at], text[at+1:], model.CustomerKey)
		if err != nil {
			return nil, term.Usage(cmd, fmt.Errorf("--key %s: %w", text, err))
		}
		if slices.ContainsFunc(keys, func(other *berthv1.Key) bool { return other.GetName() == key.GetName() }) {
			return nil, term.Usagef(cmd, "--key %s: %s is there twice", text, key.GetName())
		}
		keys = append(keys, key)
	}
	return keys, nil
}
