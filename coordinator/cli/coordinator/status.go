package coordinator

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// StatusCommand is the command status.
func StatusCommand(a *term.App) *cobra.Command {
	var stale bool
	cmd := &cobra.Command{
		Use: "status", Short: "Show at a glance whether the cluster is well", Args: term.Arguments(0),
		Long: `Show at a glance whether the cluster is well: the leader and the coordinators, how many nodes are up and VMs are
running, and what is wrong, most urgent first.

Without a leader, what one coordinator last knew is shown instead and the exit code is 5. --stale asks for that at once.
What only a leader hears, which nodes are up and which VMs run, is unknown then, with what it was and how long ago.

The context's list of coordinators follows what the leader says, as with 'berth coordinator list'.`,
		Example: `  berth status
  berth status --stale --coordinator coord2`,
		RunE:              func(cmd *cobra.Command, _ []string) error { return status(a, cmd, stale) },
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().BoolVar(&stale, "stale", false, "ask one coordinator what it knows, without the leader")
	return cmd
}

func status(a *term.App, cmd *cobra.Command, stale bool) error {
	s, err := a.Connect()
	if err != nil {
		return err
	}
	defer s.Close()
	answer, err := term.Ask(cmd.Context(), s, term.Client.Status, &berthv1.StatusRequest{Stale: stale})
	if code := rpc.Detail(err).GetCode(); !stale && (code == rpc.NoLeader || code == rpc.Unreachable) {
		known, staleErr := term.Ask(cmd.Context(), s, term.Client.Status, &berthv1.StatusRequest{Stale: true})
		if staleErr != nil {
			return err
		}
		if printErr := printStatus(a, cmd, known); printErr != nil {
			return printErr
		}
		return err
	}
	if err != nil {
		return err
	}
	if !stale {
		if err := a.KeepCoordinators(s, answer.GetMembers()); err != nil {
			return err
		}
	}
	if err := printStatus(a, cmd, answer); err != nil || stale || answer.GetLeader() != "" {
		return err
	}
	return term.Failf(rpc.NoLeader, "more than half of the coordinators must run and reach each other: "+
		"see 'systemctl status berth-coordinator' on each of them", "the coordinators have no leader")
}

func printStatus(a *term.App, cmd *cobra.Command, answer *berthv1.StatusResponse) error {
	return a.Print(cmd, term.Result{
		Message: answer,
		Names:   term.Prefixed("coordinator/", answer.GetMembers(), (*berthv1.Member).GetName),
		Text:    func(p *term.Page, wide bool) { statusText(p, a, answer, wide) },
	})
}

func statusText(p *term.Page, a *term.App, answer *berthv1.StatusResponse, wide bool) {
	by := "answered by " + cmp.Or(answer.GetAnsweredBy(), term.None)
	if asOf := term.AsOf(a, answer.GetLastKnown()); asOf != "" {
		by += ", " + asOf
	} else if answer.GetStale() {
		by += " without the leader: it may be out of date"
	}
	fields := [][2]string{
		{"cluster", fmt.Sprintf("%s (version %s, %s)", answer.GetClusterId(), cmp.Or(answer.GetVersion(), term.None), by)},
		{"leader", fmt.Sprintf(
			"%s (term %d, index %d)", cmp.Or(answer.GetLeader(), "none"), answer.GetTerm(), answer.GetAppliedIndex(),
		)},
		{"nodes", heard(answer, answer.HeardSeconds, answer.GetNodesUp(), answer.GetNodesTotal(), "up")},
		{"VMs", heard(answer, vmsAge(answer), answer.GetVmsRunning(), answer.GetVmsTotal(), "running") + untold(answer)},
		{"operations", fmt.Sprintf("%d running", answer.GetOperationsRunning())},
	}
	if first := answer.GetCertificatesFirst(); first != "" {
		fields = append(fields, [2]string{"certificates", fmt.Sprintf("until %s at least (%s); they renew themselves",
			a.At(answer.GetCertificatesUntil()), first)})
	}
	if first := answer.GetAuthoritiesFirst(); first != "" {
		fields = append(fields, [2]string{"authorities", fmt.Sprintf("until %s at least (%s)", a.At(answer.GetAuthoritiesUntil()), first)})
	}
	p.Fields("", fields...)
	p.Blank()
	memberTable(p, answer.GetMembers(), wide)
	if len(answer.GetProblems()) > 0 {
		p.Blank()
		p.Line("problems")
		for _, problem := range answer.GetProblems() {
			p.Line("  %s", problem)
		}
	}
}

// heard is how many of all are as the nodes tell. Only a leader hears them: without one it is what was last known, or nothing.
func heard(answer *berthv1.StatusResponse, age *float64, are, all int32, as string) string {
	switch {
	case !answer.GetStale() || answer.GetLeader() != "" && answer.GetLeader() == answer.GetAnsweredBy():
		return fmt.Sprintf("%d of %d %s", are, all, as)
	case answer.GetLastKnown() != nil && answer.GetLastKnown().GetAt() == nil:
		return "unknown"
	case age == nil:
		return fmt.Sprintf("unknown, of %d", all)
	default:
		return fmt.Sprintf("unknown, of %d (%d %s %s ago)", all, are, as, term.Span(term.Seconds(*age)))
	}
}

// untold are the VMs of which no node tells now, as for some seconds after another coordinator leads: they need not be down.
func untold(answer *berthv1.StatusResponse) string {
	if answer.GetVmsUntold() == 0 || answer.GetLastKnown() != nil {
		return ""
	}
	return fmt.Sprintf(", %d unknown: their nodes do not tell", answer.GetVmsUntold())
}

// vmsAge is how old the number of VMs that run is; nil: it is not known. A coordinator that has heard no leader counts by its records.
func vmsAge(answer *berthv1.StatusResponse) *float64 {
	if known := answer.GetLastKnown(); known.GetAt() != nil {
		return new(known.GetAgeSeconds())
	}
	return answer.HeardSeconds
}

func memberTable(p *term.Page, members []*berthv1.Member, wide bool) {
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
		health, behind, level := "healthy", term.None, term.None
		if !member.GetHealthy() {
			health = cmp.Or(member.GetHealth(), "not known")
		}
		if member.GetReachable() {
			behind = strconv.FormatUint(member.GetBehind(), 10)
		}
		if member.GetFeatureLevel() > 0 {
			level = strconv.FormatUint(uint64(member.GetFeatureLevel()), 10)
		}
		contact := term.None
		if member.LastContactSeconds != nil && !member.GetLeader() {
			contact = term.Span(term.Seconds(member.GetLastContactSeconds()))
		}
		row := []string{
			member.GetName(), role, health, member.GetApiAddress(),
			strconv.FormatUint(member.GetLastIndex(), 10), behind, contact, cmp.Or(member.GetVersion(), term.None),
		}
		if wide {
			row = append(row, level, member.GetAddress(), member.GetAgentAddress(), member.GetId())
		}
		rows = append(rows, row)
	}
	p.Table(headings, rows)
}
