// Package onlookers measures what it costs coordinators that somebody looks: the console's pages, and the history of what happened.
package onlookers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/sync/errgroup"

	"berth/integration/bench/report"
	"berth/integration/bench/testbed"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// Goals.
const (
	mostFirstPaint = 0.3                    // seconds of the server
	mostCore       = 0.1                    // of the leader, for all consoles
	mostScripts    = 60e3                   // bytes, packed
	mostHistory    = 0.02                   // of a core
	mostKept       = 5 * float64(units.GiB) // bytes
)

// Size is what is raised, and how often something is repeated.
type Size struct {
	Nodes, VMs int
	Consoles   int
	Pages      int           // that are timed
	Watched    time.Duration // of the leader, with and without consoles
	Moves      int           // whose history is weighed
}

// Goal is what the goals are set for.
var Goal = Size{Nodes: 1000, VMs: 10_000, Consoles: 200, Pages: 20, Watched: 30 * time.Second, Moves: 200}

// Quick shows that everything works.
var Quick = Size{Nodes: 20, VMs: 40, Consoles: 20, Pages: 3, Watched: 3 * time.Second, Moves: 10}

// site is a cluster of three coordinators with simulated nodes.
type site struct {
	Size

	coordinators *testbed.Coordinators
	fleet        *testbed.Fleet
	leader       *testbed.Member
}

// Measure takes W1 to W3 and H2 from real coordinators, by the program that was built, with their data in a folder.
func Measure(ctx context.Context, program, folder string, size Size) (rows []report.Row, err error) {
	s := &site{Size: size}
	if s.coordinators, err = testbed.RaiseCoordinators(ctx, program, folder, 3); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.coordinators.Close()) }()
	if s.fleet, err = testbed.EnrolFleet(ctx, s.coordinators, s.Nodes); err != nil {
		return nil, err
	}
	defer s.fleet.Close()
	if err := testbed.Populate(ctx, s.coordinators.Members[0].API, s.VMs, s.node); err != nil {
		return nil, err
	}
	if s.leader, err = s.coordinators.Leader(ctx); err != nil {
		return nil, err
	}
	for _, take := range []func(context.Context) (report.Row, error){s.firstPaint, s.consoles, s.scripts, s.keptMoves} {
		row, err := take(ctx)
		if err != nil {
			return rows, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// atOnce is how many calls are under way.
const atOnce = 64

// node is the name of the one that a VM is started on.
func (s *site) node(vm int) string { return fmt.Sprintf("node%d", vm%s.Nodes+1) }

// firstPaint is W1: the map, from when it is asked for until its last byte is there.
func (s *site) firstPaint(ctx context.Context) (report.Row, error) {
	visitor, err := s.login(ctx)
	if err != nil {
		return report.Row{}, err
	}
	defer visitor.CloseIdleConnections()
	var took report.Figures
	var size int64
	for range s.Pages {
		begun := time.Now()
		page, err := visitor.read(ctx, "/")
		if err != nil {
			return report.Row{}, err
		}
		took.Add(time.Since(begun))
		size = int64(len(page))
	}
	return report.Row{
		Goal: "W1", What: fmt.Sprintf("the console's map of %d nodes and %d VMs, until its last byte is read", s.Nodes, s.VMs),
		Measured: took.Latency() + ", " + report.Megabytes(float64(size)), Against: "the goal's own limit",
		Wanted: "<= " + report.Seconds(mostFirstPaint), Verdict: report.Judge(took.Median(), mostFirstPaint),
	}, nil
}

// consoles is W2: the CPU of the leader with many consoles open on its map, less what it takes without them.
func (s *site) consoles(ctx context.Context) (report.Row, error) {
	alone, err := s.load(ctx)
	if err != nil {
		return report.Row{}, err
	}
	following, stop := context.WithCancel(ctx)
	defer stop()
	open, opening := errgroup.WithContext(following)
	shown := make(chan struct{}, s.Consoles)
	visitor, err := s.login(ctx)
	if err != nil {
		return report.Row{}, err
	}
	for i := range s.Consoles {
		another := visitor.from(i) // each browser has a connection and a machine of its own
		defer another.CloseIdleConnections()
		open.Go(func() error { return another.follow(opening, "/live/", shown) })
	}
	for range s.Consoles {
		select {
		case <-shown:
		case <-opening.Done():
			return report.Row{}, open.Wait()
		}
	}
	watched, err := s.load(ctx)
	stop()
	if err := errors.Join(err, open.Wait()); err != nil {
		return report.Row{}, err
	}
	extra := watched - alone
	return report.Row{
		Goal: "W2", What: fmt.Sprintf("CPU of the leader for %d consoles that follow its map of %d nodes", s.Consoles, s.Nodes),
		Measured: report.Digits(extra) + " cores",
		Against:  "without consoles " + report.Digits(alone) + " cores, with them " + report.Digits(watched),
		Wanted:   "<= " + report.Digits(mostCore) + " cores", Verdict: report.Judge(extra, mostCore),
	}, nil
}

// load is how many cores the leader takes.
func (s *site) load(ctx context.Context) (float64, error) {
	pid := s.leader.Process.PID()
	before, err := testbed.CPUTime(pid)
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	if err := testbed.Pause(ctx, s.Watched); err != nil {
		return 0, err
	}
	after, err := testbed.CPUTime(pid)
	return (after - before).Seconds() / time.Since(begun).Seconds(), err
}

// scripts is W3: what a browser loads of JavaScript.
func (s *site) scripts(ctx context.Context) (report.Row, error) {
	visitor, err := s.login(ctx)
	if err != nil {
		return report.Row{}, err
	}
	defer visitor.CloseIdleConnections()
	count, size, err := visitor.scripts(ctx, "/")
	return report.Row{
		Goal: "W3", What: "scripts of the console, packed by gzip", Measured: fmt.Sprintf("%s kB in %d files", report.Digits(size/1e3), count),
		Against: "the goal's own limit", Wanted: "<= " + report.Digits(mostScripts/1e3) + " kB", Verdict: report.Judge(size, mostScripts),
	}, err
}

// days and largest are what the history of a large site has to hold.
const (
	days    = 90
	largest = 10_000 // VMs, each moved once a day
)

// keptMoves is H2: what moves add to the history of a member, carried over to a large site.
func (s *site) keptMoves(ctx context.Context) (report.Row, error) {
	before, err := s.kept()
	if err != nil {
		return report.Row{}, err
	}
	moving, moved := errgroup.WithContext(ctx)
	moving.SetLimit(atOnce / 4)
	for i := range s.Moves {
		moving.Go(func() error {
			name, api := fmt.Sprintf("vm%05d", i%s.VMs), s.leader.API
			answer, err := api.MigrateVM(moved, connect.NewRequest(&berthv1.MigrateVMRequest{Vm: name, Node: s.node(i + 1)}))
			if err != nil {
				return fmt.Errorf("migrate %s: %w", name, err)
			}
			_, err = testbed.AwaitEnd(moved, api, answer.Msg.GetOperation().GetId())
			return err
		})
	}
	if err := moving.Wait(); err != nil {
		return report.Row{}, err
	}
	if err := testbed.Pause(ctx, settle); err != nil {
		return report.Row{}, err
	}
	after, err := s.kept()
	each := (after - before) / float64(s.Moves)
	whole := each * largest * days
	return report.Row{
		Goal: "H2", What: fmt.Sprintf("history of %d days of %d VMs, each moved once a day, from %d moves", days, largest, s.Moves),
		Measured: report.Digits(whole/float64(units.GiB)) + " GiB", Against: report.Digits(each) + " bytes a move, its decision over " +
			fmt.Sprint(s.Nodes) + " nodes",
		Wanted: "<= " + report.Digits(mostKept/float64(units.GiB)) + " GiB", Verdict: report.Judge(whole, mostKept),
	}, err
}

// settle is how long a member may take to write what has happened.
const settle = 3 * time.Second

// kept is the size of the leader's history.
func (s *site) kept() (size float64, err error) {
	err = filepath.WalkDir(filepath.Join(s.leader.Data(), "history"), func(_ string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			size += float64(info.Size())
		}
		return err
	})
	return size, err
}

// drained reads an answer to its end.
func drained(answer *http.Response) ([]byte, error) {
	defer answer.Body.Close() //nolint:errcheck // it was read, or its error is told
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %.200s", answer.Request.URL.Path, answer.Status, body)
	}
	return body, err
}
