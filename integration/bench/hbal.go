package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"berth/coordinator/balance"
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/schema"
	"berth/coordinator/view"
	"berth/integration/bench/report"
	"berth/shared/units"
)

// hbalPlan is what hbal made of a cluster.
type hbalPlan struct {
	took    time.Duration
	before  float64 // its score
	score   float64
	moves   int
	gibs    float64
	exactly string // the score as it was printed
}

var (
	hbalImproved = regexp.MustCompile(`Cluster score improved from ([0-9.]+) to ([0-9.]+)`)
	hbalStep     = regexp.MustCompile(`(?m)^ +[0-9]+\. (\S+) \S+ +=> \S+ `)
	hbalOverall  = regexp.MustCompile(`Initial coefficients: overall ([0-9.]+)`)
)

// hbalOnce lets hbal plan. Dynamic load, which the file does not give, is left out of its score.
func hbalOnce(ctx context.Context, hbal, data string, s *site) (plan hbalPlan, err error) {
	begun := time.Now()
	out, err := output(ctx, hbal, "--ignore-dynu", "-t", data)
	plan.took = time.Since(begun)
	if err != nil {
		return plan, err
	}
	improved := hbalImproved.FindSubmatch(out)
	if improved == nil {
		return plan, fmt.Errorf("hbal answered %s", bytes.TrimSpace(out))
	}
	plan.exactly = string(improved[2])
	if plan.before, err = strconv.ParseFloat(string(improved[1]), 64); err != nil {
		return plan, err
	}
	if plan.score, err = strconv.ParseFloat(plan.exactly, 64); err != nil {
		return plan, err
	}
	for _, step := range hbalStep.FindAllSubmatch(out, -1) {
		vm, err := siteIndex("vm", string(step[1]))
		if err != nil || vm >= len(s.vms) {
			return plan, fmt.Errorf("hbal moves %s", step[1])
		}
		plan.moves++
		plan.gibs += float64(s.vms[vm].memory) / 1024
	}
	return plan, nil
}

// hbalScore is how hbal scores a cluster as it is.
func hbalScore(ctx context.Context, hbal, data string) (float64, error) {
	out, err := output(ctx, hbal, "--ignore-dynu", "-t", data, "-l", "0", "-v", "-v")
	if err != nil {
		return 0, err
	}
	overall := hbalOverall.FindSubmatch(out)
	if overall == nil {
		return 0, fmt.Errorf("hbal answered %s", bytes.TrimSpace(out))
	}
	return strconv.ParseFloat(string(overall[1]), 64)
}

// siteIndex is the number in a name of the site.
func siteIndex(prefix, name string) (int, error) {
	return strconv.Atoi(strings.TrimPrefix(name, prefix))
}

// readHtools reads what site.htools writes: a cluster in records, all of its VMs running, with what is known of the hosts.
func readHtools(path string) (records estate.State, facts map[string]model.NodeFacts, err error) {
	text, err := os.Open(path)
	if err != nil {
		return records, nil, err
	}
	defer text.Close()
	facts = map[string]model.NodeFacts{}
	section := 0
	for lines := bufio.NewScanner(text); lines.Scan(); {
		fields := strings.Split(lines.Text(), "|")
		switch {
		case lines.Text() == "":
			section++
		case section == 1:
			err = addHost(&records, facts, fields)
		case section == 2:
			err = addGuest(&records, facts, fields)
		}
		if err != nil {
			return records, nil, fmt.Errorf("%s: %q: %w", path, lines.Text(), err)
		}
	}
	return records, facts, nil
}

// amounts reads whole numbers.
func amounts(fields ...string) ([]int, error) {
	all := make([]int, len(fields))
	for i, field := range fields {
		n, err := strconv.Atoi(field)
		if err != nil {
			return nil, err
		}
		all[i] = n
	}
	return all, nil
}

func addHost(records *estate.State, facts map[string]model.NodeFacts, fields []string) error {
	n, err := amounts(fields[1], fields[3], fields[6])
	if err != nil {
		return err
	}
	name, free, idle := fields[0], units.Bytes(n[1])*units.MiB, 0.0
	records.Nodes = append(records.Nodes, model.Node{ID: name, Name: name, Cluster: model.DefaultCluster})
	facts[name] = model.NodeFacts{
		Liveness: model.Up, Inventory: true, InventoryAt: decidedAt, DomainsKnown: true, Memory: units.Bytes(n[0]) * units.MiB, CPUs: n[2],
		Telemetry: true, TelemetryAt: decidedAt, Available: &free, Load1: &idle,
	}
	return nil
}

func addGuest(records *estate.State, facts map[string]model.NodeFacts, fields []string) error {
	n, err := amounts(fields[1], fields[3])
	if err != nil {
		return err
	}
	name, host, memory, idle := fields[0], fields[6], units.Bytes(n[0])*units.MiB, 0.0
	started := decidedAt.Add(-time.Hour)
	records.VMs = append(records.VMs, model.VM{
		ID: name, Name: name, Spec: model.VMSpec{Memory: memory, VCPUs: n[1]}, Desired: model.Running, Holder: host, StartedAt: started,
	})
	known := facts[host]
	known.Domains = append(known.Domains, model.Domain{
		UUID: name, Name: name, State: model.DomainRunning, Memory: memory, VCPUs: n[1], Managed: true, Since: started,
		Resident: &memory, CPU: &idle,
	})
	facts[host] = known
	return nil
}

// evenOnce reads a cluster from the file that hbal reads and plans as the leader does, until it is as even as that. vCPUs
// are counted a CPU, as hbal counts them.
func evenOnce(path string, enough string) (model.Plan, time.Duration, error) {
	begun := time.Now()
	records, facts, err := readHtools(path)
	if err != nil {
		return model.Plan{}, 0, err
	}
	records.Resources = []model.Resource{
		{
			ID: model.DefaultCluster, Kind: model.KindCluster, Name: model.DefaultCluster,
			Links: map[string]string{schema.LinkPolicy: "policy"}, Settings: map[string]string{model.SettingCPURatio: "1"},
		},
		{
			ID: "policy", Kind: model.KindPolicy, Name: "even",
			Settings: map[string]string{schema.SettingGate: "off", schema.SettingBalancer: "even-load"},
			Lists: map[string][]string{
				schema.ListWeighers: {"cpu-load=2", "memory-free=1"}, schema.ListParameters: {balance.EvenEnough + "=" + enough},
			},
		},
	}
	view := view.New(decidedAt, 1, view.Records{Clusters: records.Resources[:1], Nodes: records.Nodes, VMs: records.VMs}, facts)
	fleet, err := estate.FleetOf(estate.Indexed(&records), view, model.DefaultCluster, nil)
	if err != nil {
		return model.Plan{}, 0, err
	}
	seed := uint64(0)
	fleet.Seed = func() uint64 { seed++; return seed }
	plan := balance.Even(fleet, len(records.VMs))
	if len(plan.Moves) == 0 {
		return plan, 0, fmt.Errorf("no plan: %s", plan.Reason)
	}
	return plan, time.Since(begun), nil
}

// after is the site once a plan was carried out.
func (s *site) after(plan *model.Plan) (*site, error) {
	moved := &site{used: slices.Clone(s.used), vms: slices.Clone(s.vms)}
	for _, move := range plan.Moves {
		vm, err := siteIndex("vm", move.VM)
		if err != nil || vm >= len(moved.vms) {
			return nil, fmt.Errorf("the plan moves %s", move.VM)
		}
		to, err := siteIndex("node", move.Target)
		if err != nil || to >= len(moved.used) {
			return nil, fmt.Errorf("the plan moves %s to %s", move.VM, move.Target)
		}
		one := &moved.vms[vm]
		moved.used[one.host] -= one.memory
		moved.used[to] += one.memory
		one.host = to
	}
	return moved, nil
}

// gibs is how much memory a plan moves.
func gibs(plan *model.Plan) (sum float64) {
	for _, move := range plan.Moves {
		sum += float64(move.Memory) / float64(units.GiB)
	}
	return sum
}

// evened is a plan of ours, repeated for its time, and the score that hbal gives the cluster after it.
func evened(
	ctx context.Context, hbal, folder, data string, s *site, enough string, rounds int,
) (took report.Figures, plan model.Plan, score float64, err error) {
	for range rounds {
		if ctx.Err() != nil {
			return took, plan, 0, ctx.Err()
		}
		var once time.Duration
		if plan, once, err = evenOnce(data, enough); err != nil {
			return took, plan, 0, err
		}
		took.Add(once)
	}
	after, err := s.after(&plan)
	if err != nil {
		return took, plan, 0, err
	}
	written := filepath.Join(folder, "after.data")
	if err := writeFile(written, after.htools); err != nil {
		return took, plan, 0, err
	}
	score, err = hbalScore(ctx, hbal, written)
	return took, plan, score, err
}

// measureBalance takes B1, B2 and B3: whole plans, compared to hbal's of the same file in the same run. Ours are to come to hbal's
// score, so that moves and GiB can be compared, and hbal scores what they come to.
func measureBalance(ctx context.Context, b *bench) (rows []report.Row, err error) {
	defer alone()()
	hbal, err := exec.LookPath("hbal")
	if err != nil {
		return nil, fmt.Errorf("hbal of Ganeti's htools is not there: install ganeti-htools: %w", err)
	}
	goals := map[int]float64{20: 100, 50: 1000}
	if b.hbal100 {
		goals[100] = 1000
	}
	for _, hosts := range slices.Sorted(maps.Keys(goals)) {
		found, err := b.beside(ctx, hbal, hosts, goals[hosts])
		if rows = append(rows, found...); err != nil {
			return rows, err
		}
	}
	if !b.hbal100 {
		rows = append(rows, report.Row{What: "100 hosts are left out without -hbal100: hbal takes a quarter of an hour for them"})
	}
	found, err := b.large(ctx, hbal)
	return append(rows, found...), err
}

// beside measures B1 and B3 at one size.
func (b *bench) beside(ctx context.Context, hbal string, hosts int, faster float64) ([]report.Row, error) {
	s, folder := newSite(hosts), b.folder("b1-"+strconv.Itoa(hosts))
	data, _, _, err := s.files(folder)
	if err != nil {
		return nil, err
	}
	var theirs report.Figures
	var hbals hbalPlan
	rounds := 1
	if hosts <= 20 {
		rounds = b.rounds(1, 3)
	}
	for range rounds {
		if hbals, err = hbalOnce(ctx, hbal, data, s); err != nil {
			return nil, err
		}
		theirs.Add(hbals.took)
	}
	took, plan, score, err := evened(ctx, hbal, folder, data, s, hbals.exactly, b.rounds(3, 10))
	if err != nil {
		return nil, err
	}
	ratio, moves, copied := theirs.Median()/took.Median(), float64(len(plan.Moves))/float64(hbals.moves), gibs(&plan)/hbals.gibs
	return []report.Row{
		{
			Goal: "B1", What: fmt.Sprintf("a plan that evens out %d hosts with %d VMs, file load included", hosts, len(s.vms)),
			Measured: fmt.Sprintf("%s\n%d moves, score %.8f", took.Spread(report.Seconds), len(plan.Moves), score),
			Against: fmt.Sprintf("hbal %s: %s faster\n%d moves (%s), score %.8f, before %.8f",
				theirs.Spread(report.Seconds), report.Times(ratio), hbals.moves, report.Times(moves), hbals.score, hbals.before),
			Wanted: fmt.Sprintf(">= %gx; score <= hbal's, moves <= 1.05x, GiB <= 1.05x", faster),
			Verdict: report.Both(
				report.Both(report.Judge(faster, ratio), report.Judge(score, hbals.score)),
				report.Both(report.Judge(moves, 1.05), report.Judge(copied, 1.05)),
			),
		},
		{
			Goal: "B3", What: "GiB that it moves for that score", Measured: fmt.Sprintf("%.0f GiB", gibs(&plan)),
			Against: fmt.Sprintf("hbal %.0f GiB: %s", hbals.gibs, report.Times(copied)), Wanted: "report (stretch 0.8x)",
		},
	}, nil
}

// large measures B2.
func (b *bench) large(ctx context.Context, hbal string) (rows []report.Row, err error) {
	const enough = 0.1
	limits := map[int]float64{1000: 1}
	if !b.quick {
		limits[10_000] = 30
	}
	for _, hosts := range slices.Sorted(maps.Keys(limits)) {
		s, folder := newSite(hosts), b.folder("b2-"+strconv.Itoa(hosts))
		data, _, _, err := s.files(folder)
		if err != nil {
			return rows, err
		}
		rounds := cmp.Or(map[int]int{1000: b.rounds(1, 5)}[hosts], 1)
		took, plan, score, err := evened(ctx, hbal, folder, data, s, strconv.FormatFloat(enough, 'g', -1, 64), rounds)
		if err != nil {
			return rows, err
		}
		rows = append(rows, report.Row{
			Goal: "B2", What: fmt.Sprintf("a plan that evens out %d hosts with %d VMs, file load included", hosts, len(s.vms)),
			Measured: fmt.Sprintf("%s\n%d moves, %.0f GiB", took.Spread(report.Seconds), len(plan.Moves), gibs(&plan)),
			Against:  fmt.Sprintf("scored by hbal: %.8f", score),
			Wanted:   fmt.Sprintf("score < %g in <= %g s", enough, limits[hosts]), Verdict: report.Both(
				report.Judge(took.Median(), limits[hosts]), report.Judge(score, enough),
			),
		})
	}
	return rows, nil
}
