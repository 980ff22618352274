package cli

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/clientconfig"
	berthv1 "berth/shared/gen/berth/v1"
)

// completionPatience is how long a shell waits for names. Nobody likes a prompt that hangs.
const completionPatience = time.Second

// complete sets how a flag's value is completed.
func complete(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	_ = cmd.RegisterFlagCompletionFunc(flag, f) // fails for a flag that does not exist: a test asks every flag
}

func fixed(words ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
}

// files leaves the completion to the shell, which knows files.
func files(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

// first completes the first argument only.
func first(f cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return f(cmd, args, toComplete)
	}
}

// others leaves out what stands on the line already.
func others(f cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		names, directive := f(cmd, args, toComplete)
		return slices.DeleteFunc(names, func(name cobra.Completion) bool { return slices.Contains(args, name) }), directive
	}
}

// lookup completes with what the cluster knows. Without an answer there are no suggestions, and no noise.
func (a *app) lookup(list func(context.Context, *session) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		s, err := a.connect()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer s.close()
		s.patience = completionPatience
		ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
		defer cancel()
		names, err := list(ctx, s)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

func (a *app) vmNames() cobra.CompletionFunc {
	return a.lookup(func(ctx context.Context, s *session) (names []string, err error) {
		answer, err := askAll(ctx, s, client.ListVMs, &berthv1.ListVMsRequest{}, everything)
		for _, vm := range answer.GetVms() {
			names = append(names, vm.GetName())
		}
		return names, err
	})
}

func (a *app) nodeNames() cobra.CompletionFunc {
	return a.lookup(func(ctx context.Context, s *session) (names []string, err error) {
		answer, err := askAll(ctx, s, client.ListNodes, &berthv1.ListNodesRequest{}, everything)
		for _, node := range answer.GetNodes() {
			names = append(names, node.GetName())
		}
		return names, err
	})
}

func (a *app) memberNames() cobra.CompletionFunc {
	return a.lookup(func(ctx context.Context, s *session) (names []string, err error) {
		answer, err := ask(ctx, s, repeatable, client.ListMembers, &berthv1.ListMembersRequest{})
		for _, member := range answer.GetMembers() {
			names = append(names, member.GetName())
		}
		return names, err
	})
}

func (a *app) operationIDs() cobra.CompletionFunc {
	return a.lookup(func(ctx context.Context, s *session) (ids []string, err error) {
		answer, err := askAll(ctx, s, client.ListOperations, &berthv1.ListOperationsRequest{}, defaultLimit)
		for _, op := range answer.GetOperations() {
			ids = append(ids, cobra.CompletionWithDesc(op.GetId(), op.GetKind()+" "+op.GetVm()))
		}
		return ids, err
	})
}

func (a *app) decisionIDs() cobra.CompletionFunc {
	return a.lookup(func(ctx context.Context, s *session) (ids []string, err error) {
		answer, err := askAll(ctx, s, client.ListDecisions, &berthv1.ListDecisionsRequest{}, defaultLimit)
		ids = append(ids, lastDecision)
		for _, decision := range answer.GetDecisions() {
			ids = append(ids, cobra.CompletionWithDesc(decision.GetId(), decision.GetPurpose()+" "+decision.GetVm()))
		}
		return ids, err
	})
}

// contextNames needs no cluster.
func (a *app) contextNames(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	config, _, err := clientconfig.Find(clientconfig.Places(a.clientConfig, a.env))
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return config.Names(), cobra.ShellCompDirectiveNoFileComp
}
