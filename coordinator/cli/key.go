package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"berth/coordinator/cluster"
	"berth/coordinator/estate"
	berthv1 "berth/shared/gen/berth/v1"
)

var keyClasses = []string{string(cluster.SystemKey), string(cluster.BillingEntityKey), string(cluster.CustomerKey)}

func (a *app) keyCommand() *cobra.Command {
	return noun("key COMMAND", "Set and see the keys that steer placement", `
A key is a name with a number. It is set on a resource or a VM, and the lowest of sixteen levels wins for each VM:
cluster, billing entity, customer, image, VDC, VM, first disk, first NIC, and the offers of these. 'berth key compiled
VM' shows what came out, and from where.

A node scores (1 - distance of the two values) x weight for each key that it has as well, and nothing from a distance
of 1 on. System keys meet the keys of nodes: those that the cluster declares, and #RAM, #CPU and #LOAD, which every
node has by itself. They decide which nodes are good enough. Among those, billing-entity and customer keys decide:
they meet the keys of VMs that the same owner runs there, so a negative weight keeps VMs apart, and the node's own
keys whose names begin with _. A key without a weight takes no part.`,
		a.keySetCommand(), a.keyUnsetCommand(), a.keyListCommand(), a.keyCompiledCommand())
}

// parseRef reads KIND/NAME of something that can have keys.
func parseRef(cmd *cobra.Command, ref string, kinds []string) (kind, name string, err error) {
	kind, name, found := strings.Cut(ref, "/")
	switch {
	case !found || kind == "" || name == "":
		return "", "", Usagef(cmd, "%q: want KIND/NAME, for instance vm/web-1", ref)
	case kind == string(cluster.KindNode) && !slices.Contains(kinds, kind):
		return "", "", Usagef(cmd, "%s: its cluster declares what keys a node has; 'berth node set %s --key NAME=VALUE' gives one a value", ref, name)
	case !slices.Contains(kinds, kind):
		return "", "", Usagef(cmd, "%s: there is no kind %q, use %s", ref, kind, strings.Join(kinds, ", "))
	}
	return kind, name, nil
}

// keyKinds are the kinds that keys are set on.
func keyKinds() []string {
	kinds := make([]string, 0, len(estate.Forms())+1)
	for _, form := range estate.Forms() {
		if form.Kind.Keys() {
			kinds = append(kinds, string(form.Kind))
		}
	}
	return append(kinds, string(cluster.KindVM))
}

// figure reads a value or a weight. The error is the coordinator's.
func figure(field, text string) (float64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil && f == 0 {
		return 0, &cluster.InvalidError{Field: field, Value: strconv.Quote(text), Want: "a finite number from -1e9 to 1e9"}
	}
	return f, cluster.ValidateKeyFigure(field, f)
}

// parseKey reads NAME=VALUE and checks the key against the rules on who may set what where.
func parseKey(kind, text, weight string, class cluster.KeyClass) (*berthv1.Key, error) {
	name, value, found := strings.Cut(text, "=")
	if !found {
		return nil, fmt.Errorf("%q: want NAME=VALUE", text)
	}
	key := cluster.Key{Class: class, Name: name}
	var err error
	if key.Value, err = figure("key "+name+" value", value); err != nil {
		return nil, err
	}
	if key.Weight, err = figure("key "+name+" weight", weight); err != nil {
		return nil, err
	}
	if err := cluster.ValidateKey(cluster.Kind(kind), key); err != nil {
		return nil, err
	}
	return &berthv1.Key{Class: string(key.Class), Name: key.Name, Value: key.Value, Weight: key.Weight}, nil
}

func (a *app) keySetCommand() *cobra.Command {
	var weight, class string
	cmd := &cobra.Command{
		Use: "set KIND/NAME KEY=VALUE", Short: "Set a key on a resource or a VM, or change it", Args: arguments(2, "KIND/NAME", "KEY=VALUE"),
		Long: `Set a key on a resource or a VM, or change it: value and weight together. Without --weight the key takes no part in
placement. What runs stays where it is, and shows others the keys that it was started with.

Names that begin with # are #RAM, #CPU and #LOAD and want quotes in a shell; they are system keys. Names that begin
with _ ask for a key of nodes that customers may see; they are customer or billing-entity keys. Customer keys are for
VMs, images, disks, networks and NICs.`,
		Example: `  berth key set vm/web-1 Group1=1 --weight -100 --class customer
  berth key set customer/acme Premium=1 --weight 200
  berth key set cluster/default '#RAM=0' --weight 60`,
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, name, err := parseRef(cmd, args[0], keyKinds())
			if err != nil {
				return err
			}
			if !slices.Contains(keyClasses, class) {
				return Usagef(cmd, "--class %s: use %s", class, strings.Join(keyClasses, ", "))
			}
			key, err := parseKey(kind, args[1], weight, cluster.KeyClass(class))
			if err != nil {
				return usage(cmd, err)
			}
			return a.keySet(cmd, &berthv1.SetKeyRequest{Kind: kind, Name: name, Key: key, RequestId: requestID()})
		},
		ValidArgsFunction: first(a.resourceRefs(false)),
	}
	cmd.Flags().StringVar(&weight, "weight", "0", "`NUMBER` that it counts with, negative to repel")
	cmd.Flags().StringVar(&class, "class", string(cluster.SystemKey), "`CLASS` of the key: system, billing-entity or customer")
	complete(cmd, "weight", cobra.NoFileCompletions)
	complete(cmd, "class", fixed(keyClasses...))
	return cmd
}

func (a *app) keySet(cmd *cobra.Command, request *berthv1.SetKeyRequest) error {
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	answer, err := ask(cmd.Context(), s, repeatable, client.SetKey, request)
	if err != nil {
		return err
	}
	ref, key := request.GetKind()+"/"+request.GetName(), request.GetKey()
	effect := "weight " + exact(key.GetWeight())
	if key.GetWeight() == 0 {
		effect = "weight 0: it takes no part in placement"
	}
	if a.undeclared(cmd, s, key) {
		a.nothing(cmd, 0, fmt.Sprintf("no node has %s yet: declare it with 'berth cluster node-key declare CLUSTER %s', or mend the name",
			key.GetName(), key.GetName()))
	}
	return a.print(cmd, result{
		message: answer, names: []string{ref},
		text: func(p *page, _ bool) {
			p.line("%s: %s key %s = %s, %s", ref, key.GetClass(), key.GetName(), exact(key.GetValue()), effect)
		},
	})
}

// undeclared tells whether the key asks for one that no cluster declares for its nodes, which may well be a slip. Customer
// keys are met by those of other VMs, the reserved ones apart. Where it cannot be found out, nothing is said.
func (a *app) undeclared(cmd *cobra.Command, s *session, key *berthv1.Key) bool {
	name := key.GetName()
	asks := key.GetClass() == string(cluster.SystemKey) && !cluster.IsSpecialKey(name) || cluster.IsReservedKey(name)
	if !asks || key.GetWeight() == 0 {
		return false
	}
	answer, err := askAll(cmd.Context(), s, client.ListResources, &berthv1.ListResourcesRequest{Kind: string(cluster.KindCluster)}, everything)
	return err == nil && !slices.ContainsFunc(answer.GetResources(), func(r *berthv1.Resource) bool {
		return slices.ContainsFunc(r.GetNodeKeys(), func(k *berthv1.NodeKey) bool { return k.GetName() == name })
	})
}

func (a *app) keyUnsetCommand() *cobra.Command {
	var class string
	cmd := &cobra.Command{
		Use: "unset KIND/NAME KEY", Short: "Take a key away from a resource or a VM", Args: arguments(2, "KIND/NAME", "KEY"),
		Long: `Take a key away from a resource or a VM. A key of that name on a higher level counts then. The copy
that a VM has of a node's sticky key is taken away the same way, and is made again by a start on such a node. --class is
needed only where two classes have a key of that name.`,
		Example: `  berth key unset vm/web-1 Group1
  berth key unset cluster/default '#LOAD'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, name, err := parseRef(cmd, args[0], keyKinds())
			if err != nil {
				return err
			}
			if class != "" && !slices.Contains(keyClasses, class) {
				return Usagef(cmd, "--class %s: use %s", class, strings.Join(keyClasses, ", "))
			}
			s, err := a.connect()
			if err != nil {
				return err
			}
			defer s.close()
			answer, err := ask(cmd.Context(), s, repeatable, client.UnsetKey, &berthv1.UnsetKeyRequest{
				Kind: kind, Name: name, Class: class, Key: args[1], RequestId: requestID(),
			})
			if err != nil {
				return err
			}
			return a.print(cmd, result{
				message: answer, names: []string{args[0]},
				text: func(p *page, _ bool) { p.line("%s: key %s is gone", args[0], args[1]) },
			})
		},
		ValidArgsFunction: first(a.resourceRefs(false)),
	}
	cmd.Flags().StringVar(&class, "class", "", "`CLASS` of the key: system, billing-entity or customer")
	complete(cmd, "class", fixed(keyClasses...))
	return cmd
}

func (a *app) keyListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list KIND/NAME", Short: "List the keys of a resource, a VM or a node", Args: arguments(1, "KIND/NAME"),
		Long: `List the keys that were set on a resource or a VM, and those that the node of its last start left on a VM. Of a node:
the keys that its cluster declares, each with the node's value.`,
		Example: `  berth key list vm/web-1
  berth key list cluster/default
  berth key list node/hv1`,
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, name, err := parseRef(cmd, args[0], append(keyKinds(), string(cluster.KindNode)))
			if err != nil {
				return err
			}
			s, err := a.connect()
			if err != nil {
				return err
			}
			defer s.close()
			answer, err := ask(cmd.Context(), s, repeatable, client.ListKeys, &berthv1.ListKeysRequest{Kind: kind, Name: name})
			if err != nil {
				return err
			}
			rows := len(answer.GetKeys()) + len(answer.GetSticky()) + len(answer.GetNodeKeys())
			a.nothing(cmd, rows, fmt.Sprintf("%s has no keys of its own", args[0]))
			return a.print(cmd, result{
				message: answer,
				names:   keyNames(answer),
				text:    func(p *page, _ bool) { keysText(p, kind, answer) },
			})
		},
		ValidArgsFunction: first(a.resourceRefs(true)),
	}
}

func keyNames(answer *berthv1.ListKeysResponse) []string {
	names := prefixed("", answer.GetKeys(), (*berthv1.Key).GetName)
	names = append(names, prefixed("", answer.GetSticky(), (*berthv1.Key).GetName)...)
	return append(names, prefixed("", answer.GetNodeKeys(), (*berthv1.NodeKey).GetName)...)
}
