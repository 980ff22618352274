package resource

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/term"
	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

func poolListCommand(a *term.App) *cobra.Command {
	var in string
	cmd := &cobra.Command{
		Use: "list", Short: "List storage pools: how large they are and how full", Args: term.Arguments(0),
		Long: `List storage pools. CAPACITY and FREE are what the nodes show, of a local pool on all of them together. PROMISED is what
its disks and images may grow to, and LIMIT the most that may be promised. NODES are those that have it now, of those
that should.`,
		Example: `  berth pool list
  berth pool list --cluster prod -o wide`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			answer, err := pools(a, cmd, &berthv1.ListPoolsRequest{Cluster: in})
			if err != nil {
				return err
			}
			a.NoteIfEmpty(cmd, len(answer.GetPools()), "no storage pools: 'berth pool add --help' shows how to declare one")
			return a.Print(cmd, term.Result{
				Message: answer, Names: term.Prefixed("pool/", answer.GetPools(), (*berthv1.Pool).GetName),
				Text: func(p *term.Page, wide bool) { poolTable(p, answer.GetPools(), wide) },
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&in, "cluster", "", "only those of `CLUSTER`")
	term.Complete(cmd, "cluster", a.ResourceNames(model.KindCluster))
	return cmd
}

func pools(a *term.App, cmd *cobra.Command, request *berthv1.ListPoolsRequest) (*berthv1.ListPoolsResponse, error) {
	s, err := a.Connect()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return term.AskAll(cmd.Context(), s, term.Client.ListPools, request, term.Everything)
}

func poolTable(p *term.Page, pools []*berthv1.Pool, wide bool) {
	headings := []string{"NAME", "CLUSTER", "SCOPE", "CAPACITY", "FREE", "PROMISED", "LIMIT", "DISKS", "IMAGES", "NODES"}
	if wide {
		headings = append(headings, "SOURCE", "OVER-PROVISIONING")
	}
	rows := make([][]string, 0, len(pools))
	for _, pool := range pools {
		whole, nodes := summed(pool)
		row := []string{
			pool.GetName(), pool.GetCluster(), pool.GetScope(), term.Size(whole.GetCapacityBytes()), term.Size(whole.GetAvailableBytes()),
			term.Size(whole.GetPromisedBytes()), term.Size(whole.GetLimitBytes()), strconv.Itoa(int(pool.GetDisks())),
			strconv.Itoa(int(pool.GetImages())), fmt.Sprintf("%d/%d", len(whole.GetNodes()), nodes),
		}
		if wide {
			row = append(row, pool.GetSource(), units.Figure(pool.GetOverProvisioning()))
		}
		rows = append(rows, row)
	}
	p.Table(headings, rows)
}

// summed is a pool's shares together, and how many nodes should have it.
func summed(pool *berthv1.Pool) (whole *berthv1.PoolShare, nodes int) {
	whole = &berthv1.PoolShare{}
	for _, share := range pool.GetShares() {
		whole.CapacityBytes += share.GetCapacityBytes()
		whole.AvailableBytes += share.GetAvailableBytes()
		whole.PromisedBytes += share.GetPromisedBytes()
		whole.LimitBytes += share.GetLimitBytes()
		whole.Nodes = append(whole.Nodes, share.GetNodes()...)
		nodes += len(share.GetNodes()) + len(share.GetMissing())
	}
	return whole, nodes
}

func poolShowCommand(a *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "Show a storage pool: its settings, and how full it is where", Args: term.Arguments(1, "NAME"),
		Example: `  berth pool show fast
  berth pool show fast -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			answer, err := pools(a, cmd, &berthv1.ListPoolsRequest{Pool: args[0]})
			if err != nil {
				return err
			}
			return a.Print(cmd, term.Result{
				Message: answer, Names: term.Prefixed("pool/", answer.GetPools(), (*berthv1.Pool).GetName),
				Text: func(p *term.Page, _ bool) {
					for _, pool := range answer.GetPools() {
						poolText(a, p, pool)
					}
				},
			})
		},
		ValidArgsFunction: term.CompleteFirst(a.ResourceNames(model.KindPool)),
	}
}

// locksText is what the nodes of a shared pool have found when they tried locks, and how long ago.
func locksText(a *term.App, locks *berthv1.PoolLocks) string {
	at := func(said string) string {
		if locks.GetTriedAt() == nil {
			return said
		}
		return fmt.Sprintf("%s, %s ago", said, a.Since(locks.GetTriedAt()))
	}
	switch locks.GetVerdict() {
	case berthv1.PoolLocksVerdict_POOL_LOCKS_VERDICT_REACH:
		return at(fmt.Sprintf("each of %d nodes sees those of another one", locks.GetNodes()))
	case berthv1.PoolLocksVerdict_POOL_LOCKS_VERDICT_STAY:
		return at("do not reach other nodes: " + locks.GetWhy())
	case berthv1.PoolLocksVerdict_POOL_LOCKS_VERDICT_NOT_SHARED:
		return at("the pool is not shared: " + locks.GetWhy())
	default:
		return "not known: " + locks.GetWhy()
	}
}

// sidesText says which nodes have the same storage under the pool's name.
func sidesText(sides []*berthv1.PoolSide) string {
	names := make([]string, 0, len(sides))
	for _, side := range sides {
		names = append(names, strings.Join(side.GetNodes(), ", "))
	}
	return strings.Join(names, " | ") + ": a VM with a disk there stays on its side"
}

func poolText(a *term.App, p *term.Page, pool *berthv1.Pool) {
	p.Line("pool/%s", pool.GetName())
	fields := [][2]string{
		{"cluster", pool.GetCluster()},
		{"scope", pool.GetScope()},
		{"source", pool.GetSource()},
		{"over_provisioning", units.Figure(pool.GetOverProvisioning())},
		{"disks", strconv.Itoa(int(pool.GetDisks()))},
		{"images", strconv.Itoa(int(pool.GetImages()))},
	}
	if pool.GetLocks() != nil {
		fields = append(fields, [2]string{"locks", locksText(a, pool.GetLocks())})
		if sides := pool.GetLocks().GetSides(); len(sides) > 0 {
			fields = append(fields, [2]string{"apart", sidesText(sides)})
		}
	}
	if pool.GetHaWithoutLock() {
		fields = append(fields, [2]string{"ha_without_lock", "true"})
	}
	p.Fields("  ", fields...)
	var rows [][]string
	var missing []string
	for _, share := range pool.GetShares() {
		missing = append(missing, share.GetMissing()...)
		if len(share.GetNodes()) == 0 {
			continue
		}
		rows = append(rows, []string{
			strings.Join(share.GetNodes(), ","), term.Size(share.GetCapacityBytes()), term.Size(share.GetAvailableBytes()),
			term.Size(share.GetPromisedBytes()), term.Size(share.GetLimitBytes()), strconv.Itoa(int(share.GetDisks())),
		})
	}
	if len(rows) > 0 {
		p.Blank()
		p.Indented("  ", []string{"NODES", "CAPACITY", "FREE", "PROMISED", "LIMIT", "DISKS"}, rows)
	}
	if len(missing) > 0 {
		p.Blank()
		p.Line("not on")
		for _, why := range missing {
			p.Line("  %s", why)
		}
	}
}

// notePoolless tells at once that no node has what a pool that was just declared stands for: otherwise the first disk tells it. The pool
// is declared all the same, because nodes may come, or have it later.
func notePoolless(a *term.App, cmd *cobra.Command, name string) {
	answer, err := pools(a, cmd, &berthv1.ListPoolsRequest{})
	at := slices.IndexFunc(answer.GetPools(), func(pool *berthv1.Pool) bool { return pool.GetName() == name })
	if err != nil || at < 0 {
		return // it is declared, and what is told of it is only a help
	}
	pool := answer.GetPools()[at]
	var missing []string
	for _, share := range pool.GetShares() {
		if len(share.GetNodes()) > 0 {
			return
		}
		missing = append(missing, share.GetMissing()...)
	}
	if len(missing) == 0 {
		a.Note(cmd, fmt.Sprintf("note: no node of cluster %s is known to have libvirt's pool %s yet", pool.GetCluster(), pool.GetSource()))
		return
	}
	a.Note(cmd, fmt.Sprintf("note: no node of cluster %s has libvirt's pool %s in use (%s): define and start it there, or mend --source",
		pool.GetCluster(), pool.GetSource(), units.Some(missing, term.Brief, "; ")))
}
