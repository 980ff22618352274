package key

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/keyform"
	"berth/coordinator/cli/term"
	"berth/coordinator/model"
	"berth/coordinator/schema"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// Command is the noun key.
func Command(a *term.App) *cobra.Command {
	return term.Noun("key COMMAND", "Set and see the keys that steer placement", `
A key is a name with a number. It is set on a resource or a VM, and the lowest of sixteen levels wins for each VM:
cluster, billing entity, customer, image, VDC, VM, first disk, first NIC, and the offers of these. 'berth key compiled
VM' shows what came out, and from where.

A node scores (1 - distance of the two values) x weight for each key that it has as well, and nothing from a distance
of 1 on. System keys meet the keys of nodes: those that the cluster declares, and #RAM, #CPU and #LOAD, which every
node has by itself. They decide which nodes are good enough. Among those, billing-entity and customer keys decide:
they meet the keys of VMs that the same owner runs there, so a negative weight keeps VMs apart, and the node's own
keys whose names begin with _. A key without a weight takes no part.`,
		setCommand(a), unsetCommand(a), listCommand(a), compiledCommand(a))
}

// parseRef reads KIND/NAME of something that can have keys.
func parseRef(cmd *cobra.Command, ref string, kinds []string) (kind, name string, err error) {
	kind, name, found := strings.Cut(ref, "/")
	switch {
	case !found || kind == "" || name == "":
		return "", "", term.Usagef(cmd, "%q: want KIND/NAME, for instance vm/web-1", ref)
	case kind == string(model.KindNode) && !slices.Contains(kinds, kind):
		return "", "", term.Usagef(
			cmd, "%s: its cluster declares what keys a node has; 'berth node set %s --key NAME=VALUE' gives one a value", ref, name,
		)
	case !slices.Contains(kinds, kind):
		return "", "", term.Usagef(cmd, "%s: there is no kind %q, use %s", ref, kind, strings.Join(kinds, ", "))
	}
	return kind, name, nil
}

// bearer is what a line means by KIND/NAME, or by NAME alone where one thing that can have keys has it. It asks for the name in each kind
// and lists nothing, so that a large site answers as fast as a small one.
func bearer(a *term.App, cmd *cobra.Command, ref string, kinds []string) (kind, name string, err error) {
	if ref == "" || strings.Contains(ref, "/") {
		return parseRef(cmd, ref, kinds)
	}
	s, err := a.Connect()
	if err != nil {
		return "", "", err
	}
	defer s.Close()
	var named []string
	for _, kind := range kinds {
		_, err := term.Ask(cmd.Context(), s, term.Client.ListKeys, &berthv1.ListKeysRequest{Kind: kind, Name: ref})
		switch detail := rpc.Detail(err); {
		case err == nil:
			named = append(named, kind+"/"+ref)
		case detail == nil || detail.GetCode() != rpc.NotFound:
			return "", "", err
		}
	}
	slices.Sort(named)
	switch len(named) {
	case 0:
		return "", "", term.Failf(rpc.NotFound, "see 'berth vm list'", "nothing that can have keys is named %q", ref)
	case 1:
		return parseRef(cmd, named[0], kinds)
	default:
		return "", "", term.Usagef(cmd, "%q may be each of %s: write which", ref, strings.Join(named, ", "))
	}
}

// kinds are the kinds that keys are set on.
func kinds() []string {
	kinds := make([]string, 0, len(schema.Forms())+1)
	for _, form := range schema.Forms() {
		if form.Kind.Keys() {
			kinds = append(kinds, string(form.Kind))
		}
	}
	return append(kinds, string(model.KindVM))
}

func setCommand(a *term.App) *cobra.Command {
	var weight, class string
	cmd := &cobra.Command{
		Use: "set KIND/NAME KEY=VALUE", Short: "Set a key on a resource or a VM, or change it", Args: term.Arguments(2, "KIND/NAME", "KEY=VALUE"),
		Long: `Set a key on a resource or a VM, or change it: value and weight together. Without --weight the key takes no part in
placement. What runs stays where it is, and shows others the keys that it was started with.

Names that begin with # are #RAM, #CPU and #LOAD and want quotes in a shell; they are system keys. Names that begin
with _ ask for a key of nodes that customers may see; they are customer or billing-entity keys. Customer keys are for
VMs, images, disks, networks and NICs. KIND/ may be left out where one thing alone has the NAME.`,
		Example: `  berth key set vm/web-1 Group1=1 --weight -100 --class customer
  berth key set customer/acme Premium=1 --weight 200
  berth key set cluster/default '#RAM=0' --weight 60`,
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, name, err := bearer(a, cmd, args[0], kinds())
			if err != nil {
				return err
			}
			if !slices.Contains(keyform.Classes, class) {
				return term.Usagef(cmd, "--class %s: use %s", class, strings.Join(keyform.Classes, ", "))
			}
			key, err := keyform.Parse(kind, args[1], weight, model.KeyClass(class))
			if err != nil {
				return term.Usage(cmd, err)
			}
			return set(a, cmd, &berthv1.SetKeyRequest{Kind: kind, Name: name, Key: key, RequestId: term.RequestID()})
		},
		ValidArgsFunction: term.CompleteFirst(a.ResourceRefs(false)),
	}
	cmd.Flags().StringVar(&weight, "weight", "0", "`NUMBER` that it counts with, negative to repel")
	cmd.Flags().StringVar(&class, "class", string(model.SystemKey), "`CLASS` of the key: system, billing-entity or customer")
	term.Complete(cmd, "weight", cobra.NoFileCompletions)
	term.Complete(cmd, "class", term.CompleteFixed(keyform.Classes...))
	return cmd
}

func set(a *term.App, cmd *cobra.Command, request *berthv1.SetKeyRequest) error {
	s, err := a.Connect()
	if err != nil {
		return err
	}
	defer s.Close()
	answer, err := term.Ask(cmd.Context(), s, term.Client.SetKey, request)
	if err != nil {
		return err
	}
	ref, key := request.GetKind()+"/"+request.GetName(), request.GetKey()
	effect := "weight " + term.Exact(key.GetWeight())
	if key.GetWeight() == 0 {
		effect = "weight 0: it takes no part in placement"
	}
	if undeclared(cmd, s, key) {
		a.NoteIfEmpty(cmd, 0, fmt.Sprintf("no node has %s yet: declare it with 'berth cluster node-key declare CLUSTER %s', or mend the name",
			key.GetName(), key.GetName()))
	}
	return a.Print(cmd, term.Result{
		Message: answer, Names: []string{ref},
		Text: func(p *term.Page, _ bool) {
			p.Line("%s: %s key %s = %s, %s", ref, key.GetClass(), key.GetName(), term.Exact(key.GetValue()), effect)
		},
	})
}

// undeclared tells whether the key asks for one that no cluster declares for its nodes, which may well be a slip. Customer
// keys are met by those of other VMs, the reserved ones apart. Where it cannot be found out, nothing is said.
func undeclared(cmd *cobra.Command, s *term.Session, key *berthv1.Key) bool {
	name := key.GetName()
	asks := key.GetClass() == string(model.SystemKey) && !model.IsSpecialKey(name) || model.IsReservedKey(name)
	if !asks || key.GetWeight() == 0 {
		return false
	}
	answer, err := term.AskAll(
		cmd.Context(), s, term.Client.ListResources, &berthv1.ListResourcesRequest{Kind: string(model.KindCluster)}, term.Everything,
	)
	return err == nil && !slices.ContainsFunc(answer.GetResources(), func(r *berthv1.Resource) bool {
		return slices.ContainsFunc(r.GetNodeKeys(), func(k *berthv1.NodeKey) bool { return k.GetName() == name })
	})
}

func unsetCommand(a *term.App) *cobra.Command {
	var class string
	cmd := &cobra.Command{
		Use: "unset KIND/NAME KEY", Short: "Take a key away from a resource or a VM", Args: term.Arguments(2, "KIND/NAME", "KEY"),
		Long: `Take a key away from a resource or a VM. A key of that name on a higher level counts then. The copy
that a VM has of a node's sticky key is taken away the same way, and is made again by a start on such a node. --class is
needed only where two classes have a key of that name. A cluster keeps its special keys #RAM, #CPU and
#LOAD: they get the weight 0, with which they count nothing.`,
		Example: `  berth key unset vm/web-1 Group1
  berth key unset cluster/default '#LOAD'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, name, err := bearer(a, cmd, args[0], kinds())
			if err != nil {
				return err
			}
			if class != "" && !slices.Contains(keyform.Classes, class) {
				return term.Usagef(cmd, "--class %s: use %s", class, strings.Join(keyform.Classes, ", "))
			}
			answer, err := term.AskOnce(a, cmd, term.Client.UnsetKey, &berthv1.UnsetKeyRequest{
				Kind: kind, Name: name, Class: class, Key: args[1], RequestId: term.RequestID(),
			})
			if err != nil {
				return err
			}
			return a.Print(cmd, term.Result{
				Message: answer, Names: []string{kind + "/" + name},
				Text: func(p *term.Page, _ bool) {
					if slices.ContainsFunc(answer.GetKeys(), func(k *berthv1.Key) bool {
						return model.Kind(kind) == model.KindCluster && k.GetName() == args[1] && model.IsSpecialKey(args[1])
					}) {
						p.Line("%s/%s: key %s has the weight 0 and counts no more", kind, name, args[1])
						return
					}
					p.Line("%s/%s: key %s is gone", kind, name, args[1])
				},
			})
		},
		ValidArgsFunction: term.CompleteFirst(a.ResourceRefs(false)),
	}
	cmd.Flags().StringVar(&class, "class", "", "`CLASS` of the key: system, billing-entity or customer")
	term.Complete(cmd, "class", term.CompleteFixed(keyform.Classes...))
	return cmd
}

func listCommand(a *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "list KIND/NAME", Short: "List the keys of a resource, a VM or a node", Args: term.Arguments(1, "KIND/NAME"),
		Long: `List the keys that were set on a resource or a VM, and those that the node of its last start left on a VM. Of a node:
the keys that its cluster declares, each with the node's value.`,
		Example: `  berth key list vm/web-1
  berth key list cluster/default
  berth key list node/hv1`,
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, name, err := bearer(a, cmd, args[0], append(kinds(), string(model.KindNode)))
			if err != nil {
				return err
			}
			answer, err := term.AskOnce(a, cmd, term.Client.ListKeys, &berthv1.ListKeysRequest{Kind: kind, Name: name})
			if err != nil {
				return err
			}
			rows := len(answer.GetKeys()) + len(answer.GetSticky()) + len(answer.GetNodeKeys())
			a.NoteIfEmpty(cmd, rows, fmt.Sprintf("%s/%s has no keys of its own", kind, name))
			return a.Print(cmd, term.Result{
				Message: answer,
				Names:   names(answer),
				Text:    func(p *term.Page, _ bool) { keysText(p, kind, answer) },
			})
		},
		ValidArgsFunction: term.CompleteFirst(a.ResourceRefs(true)),
	}
}

func names(answer *berthv1.ListKeysResponse) []string {
	names := term.Prefixed("", answer.GetKeys(), (*berthv1.Key).GetName)
	names = append(names, term.Prefixed("", answer.GetSticky(), (*berthv1.Key).GetName)...)
	return append(names, term.Prefixed("", answer.GetNodeKeys(), (*berthv1.NodeKey).GetName)...)
}
