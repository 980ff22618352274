package term

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/clientconfig"
	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
)

// completionPatience is how long a shell waits for names. Nobody likes a prompt that hangs.
const completionPatience = time.Second

// Complete sets how a flag's value is completed.
func Complete(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	_ = cmd.RegisterFlagCompletionFunc(flag, f) // fails for a flag that does not exist: a test asks every flag
}

// CompleteFixed completes with words that never change.
func CompleteFixed(words ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
}

// CompleteFiles leaves the completion to the shell, which knows files.
func CompleteFiles(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

// CompleteFirst completes the first argument only.
func CompleteFirst(f cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return f(cmd, args, toComplete)
	}
}

// CompleteOthers leaves out what stands on the line already.
func CompleteOthers(f cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		names, directive := f(cmd, args, toComplete)
		return slices.DeleteFunc(names, func(name cobra.Completion) bool { return slices.Contains(args, name) }), directive
	}
}

// CompleteFrom completes with what the cluster knows. Without an answer there are no suggestions, and no noise.
func (a *App) CompleteFrom(list func(context.Context, *Session) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		s, err := a.Connect()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer s.Close()
		s.patience, s.busy = completionPatience, 0
		ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
		defer cancel()
		names, err := list(ctx, s)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return offered(names), cobra.ShellCompDirectiveNoFileComp
	}
}

// offered leaves out names that a terminal would obey, or a shell run or take apart: they come from many machines. Descriptions are
// only shown.
func offered(names []string) []string {
	kept := names[:0]
	for _, one := range names {
		name, about, described := strings.Cut(one, "\t")
		if Clean(name) != name || strings.ContainsAny(name, " \"'`$\\;&|<>()") {
			continue
		}
		if described {
			name += "\t" + Clean(about)
		}
		kept = append(kept, name)
	}
	return kept
}

// VMNames completes with the names of VMs.
func (a *App) VMNames() cobra.CompletionFunc {
	return a.CompleteFrom(func(ctx context.Context, s *Session) (names []string, err error) {
		answer, err := AskAll(ctx, s, Client.ListVMs, &berthv1.ListVMsRequest{}, Everything)
		for _, vm := range answer.GetVms() {
			names = append(names, vm.GetName())
		}
		return names, err
	})
}

// NodeNames completes with the names of nodes.
func (a *App) NodeNames() cobra.CompletionFunc {
	return a.CompleteFrom(func(ctx context.Context, s *Session) (names []string, err error) {
		answer, err := AskAll(ctx, s, Client.ListNodes, &berthv1.ListNodesRequest{}, Everything)
		for _, node := range answer.GetNodes() {
			names = append(names, node.GetName())
		}
		return names, err
	})
}

// MemberNames completes with the names of coordinators.
func (a *App) MemberNames() cobra.CompletionFunc {
	return a.CompleteFrom(func(ctx context.Context, s *Session) (names []string, err error) {
		answer, err := Ask(ctx, s, Client.ListMembers, &berthv1.ListMembersRequest{})
		for _, member := range answer.GetMembers() {
			names = append(names, member.GetName())
		}
		return names, err
	})
}

// OperationIDs completes with the IDs of the newest operations.
func (a *App) OperationIDs() cobra.CompletionFunc {
	return a.CompleteFrom(func(ctx context.Context, s *Session) (ids []string, err error) {
		answer, err := AskAll(ctx, s, Client.ListOperations, &berthv1.ListOperationsRequest{}, DefaultLimit)
		for _, op := range answer.GetOperations() {
			ids = append(ids, cobra.CompletionWithDesc(op.GetId(), op.GetKind()+" "+op.GetVm()))
		}
		return ids, err
	})
}

// DecisionIDs completes with the IDs of the newest decisions.
func (a *App) DecisionIDs() cobra.CompletionFunc {
	return a.CompleteFrom(func(ctx context.Context, s *Session) (ids []string, err error) {
		answer, err := AskAll(ctx, s, Client.ListDecisions, &berthv1.ListDecisionsRequest{}, DefaultLimit)
		ids = append(ids, LastDecision)
		for _, decision := range answer.GetDecisions() {
			ids = append(ids, cobra.CompletionWithDesc(decision.GetId(), decision.GetPurpose()+" "+decision.GetVm()))
		}
		return ids, err
	})
}

// ContextNames needs no cluster.
func (a *App) ContextNames(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	config, _, err := clientconfig.Find(clientconfig.Places(a.ClientConfig, a.Env))
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return config.Names(), cobra.ShellCompDirectiveNoFileComp
}

// LastDecision stands for the ID of the newest decision, plan or operation.
const LastDecision = "last"

// ResourceRef is kind/name of a resource.
func ResourceRef(r *berthv1.Resource) string { return r.GetKind() + "/" + r.GetName() }

// ResourceNames completes with the names of one kind, resourceRefs with kind/name of all that can have keys.
func (a *App) ResourceNames(kind model.Kind) cobra.CompletionFunc {
	return a.CompleteFrom(func(ctx context.Context, s *Session) ([]string, error) {
		answer, err := AskAll(ctx, s, Client.ListResources, &berthv1.ListResourcesRequest{Kind: string(kind)}, Everything)
		return Prefixed("", answer.GetResources(), (*berthv1.Resource).GetName), err
	})
}

// ResourceRefs completes with kind/name of everything that can have keys.
func (a *App) ResourceRefs(withNodes bool) cobra.CompletionFunc {
	return a.CompleteFrom(func(ctx context.Context, s *Session) ([]string, error) { return Refs(ctx, s, withNodes) })
}

// Refs are all things that can have keys, as KIND/NAME; with nodes, whose clusters declare theirs, if they are wanted.
func Refs(ctx context.Context, s *Session, withNodes bool) ([]string, error) {
	resources, err := AskAll(ctx, s, Client.ListResources, &berthv1.ListResourcesRequest{}, Everything)
	if err != nil {
		return nil, err
	}
	var refs []string
	for _, resource := range resources.GetResources() {
		if model.Kind(resource.GetKind()).Keys() {
			refs = append(refs, ResourceRef(resource))
		}
	}
	vms, err := AskAll(ctx, s, Client.ListVMs, &berthv1.ListVMsRequest{}, Everything)
	if err != nil {
		return nil, err
	}
	refs = append(refs, Prefixed("vm/", vms.GetVms(), (*berthv1.VM).GetName)...)
	if !withNodes {
		return refs, nil
	}
	nodes, err := AskAll(ctx, s, Client.ListNodes, &berthv1.ListNodesRequest{}, Everything)
	return append(refs, Prefixed("node/", nodes.GetNodes(), (*berthv1.Node).GetName)...), err
}
