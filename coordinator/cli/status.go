package cli

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

func (a *app) statusCommand() *cobra.Command {
	var stale bool
	cmd := &cobra.Command{
		Use: "status", Short: "Show at a glance whether the cluster is well", Args: arguments(0),
		Long: `Show at a glance whether the cluster is well: the leader and the coordinators, how many nodes are up and VMs are
running, and what is wrong, most urgent first.

Without a leader, what one coordinator last knew is shown instead and the exit code is 5. --stale asks for that at once.`,
		Example: `  berth status
  berth status --stale --coordinator coord2`,
		RunE:              func(cmd *cobra.Command, _ []string) error { return a.status(cmd, stale) },
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().BoolVar(&stale, "stale", false, "ask one coordinator what it knows, without the leader")
	return cmd
}

func (a *app) status(cmd *cobra.Command, stale bool) error {
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	answer, err := ask(cmd.Context(), s, repeatable, client.Status, &berthv1.StatusRequest{Stale: stale})
	if code := rpc.Detail(err).GetCode(); !stale && (code == rpc.NoLeader || code == rpc.Unreachable) {
		known, staleErr := ask(cmd.Context(), s, repeatable, client.Status, &berthv1.StatusRequest{Stale: true})
		if staleErr != nil {
			return err
		}
		if printErr := a.printStatus(cmd, known); printErr != nil {
			return printErr
		}
		return err
	}
	if err != nil {
		return err
	}
	if err := a.printStatus(cmd, answer); err != nil || stale || answer.GetLeader() != "" {
		return err
	}
	return failf(rpc.NoLeader, "more than half of the coordinators must run and reach each other: "+
		"see 'systemctl status berth-coordinator' on each of them", "the coordinators have no leader")
}

func (a *app) printStatus(cmd *cobra.Command, answer *berthv1.StatusResponse) error {
	return a.print(cmd, result{
		message: answer,
		names:   prefixed("coordinator/", answer.GetMembers(), (*berthv1.Member).GetName),
		text:    func(p *page, wide bool) { statusText(p, answer, wide) },
	})
}

func statusText(p *page, answer *berthv1.StatusResponse, wide bool) {
	by := "answered by " + or(answer.GetAnsweredBy(), none)
	if answer.GetStale() {
		by += " without the leader: it may be out of date"
	}
	p.fields("",
		[2]string{"cluster", fmt.Sprintf("%s (version %s, %s)", answer.GetClusterId(), or(answer.GetVersion(), none), by)},
		[2]string{"leader", fmt.Sprintf("%s (term %d, index %d)", or(answer.GetLeader(), "none"), answer.GetTerm(), answer.GetAppliedIndex())},
		[2]string{"nodes", fmt.Sprintf("%d of %d up", answer.GetNodesUp(), answer.GetNodesTotal())},
		[2]string{"VMs", fmt.Sprintf("%d of %d running", answer.GetVmsRunning(), answer.GetVmsTotal())},
		[2]string{"operations", fmt.Sprintf("%d running", answer.GetOperationsRunning())},
	)
	p.blank()
	memberTable(p, answer.GetMembers(), wide)
	if len(answer.GetProblems()) > 0 {
		p.blank()
		p.line("problems")
		for _, problem := range answer.GetProblems() {
			p.line("  %s", problem)
		}
	}
}

func memberTable(p *page, members []*berthv1.Member, wide bool) {
	headings := []string{"COORDINATOR", "ROLE", "HEALTH", "API", "INDEX", "BEHIND", "LAST-CONTACT", "VERSION"}
	if wide {
		headings = append(headings, "LEVEL", "RAFT", "AGENTS", "ID")
	}
	rows := make([][]string, 0, len(members))
	for _, member := range members {
		role := "joining"
		switch {
		case member.GetLeader():
			role = "leader"
		case member.GetVoter():
			role = "follower"
		}
		health, behind, level := "healthy", none, none
		if !member.GetHealthy() {
			health = or(member.GetHealth(), "not known")
		}
		if member.GetReachable() {
			behind = strconv.FormatUint(member.GetBehind(), 10)
		}
		if member.GetFeatureLevel() > 0 {
			level = strconv.FormatUint(uint64(member.GetFeatureLevel()), 10)
		}
		contact := none
		if member.LastContactSeconds != nil && !member.GetLeader() {
			contact = span(seconds(member.GetLastContactSeconds()))
		}
		row := []string{
			member.GetName(), role, health, member.GetApiAddress(),
			strconv.FormatUint(member.GetLastIndex(), 10), behind, contact, or(member.GetVersion(), none),
		}
		if wide {
			row = append(row, level, member.GetAddress(), member.GetAgentAddress(), member.GetId())
		}
		rows = append(rows, row)
	}
	p.table(headings, rows)
}
