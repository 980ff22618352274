// Package browsing measures how long people wait for the console of a large site, in the browser that they have.
package browsing

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"connectrpc.com/connect"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"berth/integration/bench/report"
	"berth/integration/bench/testbed"
	"berth/integration/browser"
	"berth/integration/simagent/crew"
	berthv1 "berth/shared/gen/berth/v1"
)

// Goals are those that All measures.
var Goals = []string{"W4"}

// most is how long people may wait, in seconds.
const most = 1.0

// patience is how long the leader may take to hear all agents.
const patience = 5 * time.Minute

// Size is what is raised, and how often something is repeated.
type Size struct {
	Nodes, VMs int
	Pages      int           // that are timed
	Leaders    int           // that are looked at right after their election
	Looks      time.Duration // at each page
}

// Goal is what the goal is set for.
var Goal = Size{Nodes: 10_000, VMs: 100_000, Pages: 10, Leaders: 3, Looks: 10 * time.Second}

// Quick shows that everything works.
var Quick = Size{Nodes: 300, VMs: 600, Pages: 2, Leaders: 2, Looks: 2 * time.Second}

// members is how many coordinators there are.
const members = 3

// All takes all rows, by the program that was built, with data in a folder.
func All(ctx context.Context, program, folder string, quick bool) ([]report.Row, error) {
	if quick {
		return Measure(ctx, program, filepath.Join(folder, "browsing"), Quick)
	}
	return Measure(ctx, program, filepath.Join(folder, "browsing"), Goal)
}

// site is a cluster with many nodes, and a browser.
type site struct {
	Size

	coordinators *testbed.Coordinators
	agents       *crew.Crew
	chromium     context.Context
}

// Measure takes W4 from real coordinators with simulated nodes and a real Chromium, all on this machine.
func Measure(ctx context.Context, program, folder string, size Size) (rows []report.Row, err error) {
	s := &site{Size: size}
	if s.coordinators, err = testbed.RaiseCoordinators(ctx, program, folder, members); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.coordinators.Close()) }()
	if s.agents, err = raise(ctx, folder, s.coordinators, size.Nodes); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.agents.Close()) }()
	err = testbed.Populate(ctx, s.coordinators.Members[0].API, size.VMs, func(vm int) string { return crew.Name(vm % size.Nodes) })
	if err != nil {
		return nil, err
	}
	var end func() error
	if s.chromium, end, err = browser.Launch(ctx, filepath.Join(folder, "profile")); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, end()) }()
	for _, take := range []func(context.Context) (report.Row, error){s.long, s.elected} {
		row, err := take(ctx)
		if err != nil {
			return rows, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// long tells of a leader that has led for a while.
func (s *site) long(ctx context.Context) (report.Row, error) {
	leader, err := s.coordinators.Leader(ctx)
	if err != nil {
		return report.Row{}, err
	}
	v, first, err := login(ctx, s.chromium, leader, s.Looks)
	if err != nil {
		return report.Row{}, err
	}
	defer v.cancel()
	var took visits
	for range s.Pages {
		one, err := v.visit(s.Looks)
		if err != nil {
			return report.Row{}, err
		}
		took.add(one)
	}
	return s.row("until it can be read and used", took, took.usable, fmt.Sprintf(
		"the first look of all: %s (first byte %s)", report.Seconds(first.Usable/1e3), report.Seconds(first.First/1e3))), nil
}

// elected tells of leaders that have just been elected: each is looked at once it says that it leads, when all agents are on their way to
// it, and then ends itself. Nobody has looked at it before.
func (s *site) elected(ctx context.Context) (report.Row, error) {
	var early, back visits
	for range s.Leaders {
		one, again, err := s.next(ctx)
		if err != nil {
			return report.Row{}, err
		}
		early.add(one)
		back.add(again)
	}
	return s.row("of a leader that was just elected", early, early.usable, fmt.Sprintf(
		"once all nodes are back: %s (first byte %s)", back.usable.Latency(), back.first.Latency())), nil
}

// next ends the leader, looks at the next one at once, and again when all nodes have come to it.
func (s *site) next(ctx context.Context) (early, back visit, err error) {
	leader, err := s.coordinators.Leader(ctx)
	if err != nil {
		return visit{}, visit{}, err
	}
	v, _, err := login(ctx, s.chromium, leader, s.Looks)
	if err != nil {
		return visit{}, visit{}, err
	}
	defer v.cancel()
	begun := time.Now()
	if err := s.coordinators.Stop(leader, syscall.SIGKILL); err != nil {
		return visit{}, visit{}, err
	}
	err = testbed.Await(ctx, "another leader", patience, func(ctx context.Context) error {
		next, err := s.coordinators.Leader(ctx)
		if err == nil {
			v.at = "https://" + next.Listen.Console // cookies are for an address, whatever the port
		}
		return err
	})
	if err != nil {
		return visit{}, visit{}, err
	}
	if early, err = v.visit(s.Looks); err != nil {
		return visit{}, visit{}, err
	}
	if _, err := s.agents.AwaitBack(ctx, begun, patience); err != nil {
		return visit{}, visit{}, err
	}
	if back, err = v.visit(s.Looks); err != nil {
		return visit{}, visit{}, err
	}
	if err := s.coordinators.Start(leader); err != nil {
		return visit{}, visit{}, err
	}
	return early, back, s.coordinators.AwaitWhole(ctx)
}

// row is what W4 says of some looks.
func (s *site) row(what string, took visits, judged report.Figures, also string) report.Row {
	return report.Row{
		Goal: "W4", What: fmt.Sprintf("the console's map of %d nodes with %d VMs in Chromium, %s", s.Nodes, s.VMs, what),
		Measured: judged.Latency(),
		Against: fmt.Sprintf(
			"%s\nfirst byte %s, first paint %s\n%s over the wire, %s of HTML\nlongest task of an update %s",
			also, took.first.Latency(), took.paint.Latency(), report.Megabytes(took.wire.Median()), report.Megabytes(took.text.Median()),
			took.update.Latency()),
		Wanted: "<= " + report.Seconds(most), Verdict: report.Judge(judged.Median(), most),
	}
}

// raise has so many nodes heard. Their agents are other processes, and all are enrolled before the first of them reports.
func raise(ctx context.Context, folder string, coordinators *testbed.Coordinators, nodes int) (_ *crew.Crew, err error) {
	folder = filepath.Join(folder, "agents")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	agents, err := crew.Raise(ctx, folder, nodes)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, agents.Close())
		}
	}()
	if err := agents.Enrol(ctx, coordinators); err != nil {
		return nil, err
	}
	begun := time.Now()
	if err := agents.Run(); err != nil {
		return nil, err
	}
	if _, err = agents.AwaitBack(ctx, begun, patience); err != nil {
		return nil, err
	}
	// Whoever was welcomed has not told of itself yet, and nothing can be placed there before.
	return agents, testbed.Await(ctx, "all nodes to be up", patience, func(ctx context.Context) error {
		answer, err := coordinators.Members[0].API.Status(ctx, connect.NewRequest(&berthv1.StatusRequest{}))
		if err != nil {
			return err
		}
		if up := int(answer.Msg.GetNodesUp()); up < nodes {
			return fmt.Errorf("%d of %d are", up, nodes)
		}
		return nil
	})
}

// visits are what several visits took: in seconds, and in bytes.
type visits struct{ first, paint, usable, update, wire, text report.Figures }

func (v *visits) add(one visit) {
	v.first, v.paint = append(v.first, one.First/1e3), append(v.paint, one.Paint/1e3)
	v.usable, v.update = append(v.usable, one.Usable/1e3), append(v.update, one.Update/1e3)
	v.wire, v.text = append(v.wire, one.Wire), append(v.text, one.Text)
}

// visit is what one look at a page took, in milliseconds from when it was asked for, and how large it was, in bytes.
type visit struct {
	First  float64 // byte of the answer
	Paint  float64 // of something to read
	Usable float64 // all of it is there, and its script; the browser is at nothing that makes a key wait for long
	Update float64 // the longest that the browser was at something when what is shown had changed
	Wire   float64
	Text   float64
}

// watched keeps what the browser works on for 50 ms or more without a pause, which is what it calls a long task.
const watched = `
	window.longTasks = [];
	new PerformanceObserver((list) => {
		for (const one of list.getEntries()) window.longTasks.push([one.startTime, one.startTime + one.duration]);
	}).observe({ type: "longtask", buffered: true });
`

// told is a visit as the browser has seen it. What it works on within two seconds of the load belongs to that: the feed of the page brings
// its first message then.
const told = `(() => {
	const [load] = performance.getEntriesByType("navigation");
	const paint = performance.getEntriesByName("first-contentful-paint")[0].startTime;
	const ready = Math.max(paint, load.loadEventEnd);
	const [early, late] = [[], []];
	for (const [from, to] of window.longTasks) (from < ready + 2000 ? early : late).push([from, to]);
	return {
		First: load.responseStart, Paint: paint, Usable: Math.max(ready, ...early.map(([, to]) => to)),
		Update: Math.max(0, ...late.map(([from, to]) => to - from)), Wire: load.transferSize, Text: load.decodedBodySize,
	};
})()`

// visitor is a tab that is logged in.
type visitor struct {
	ctx    context.Context
	cancel context.CancelFunc
	at     string // https://HOST:PORT
}

// login makes a tab that is logged in to a member's console, and tells of the map that this leads to: nobody has looked at it before.
func login(ctx context.Context, chromium context.Context, member *testbed.Member, looks time.Duration) (*visitor, visit, error) {
	answer, err := member.API.OfferSession(ctx, connect.NewRequest(&berthv1.OfferSessionRequest{ReadOnly: true}))
	if err != nil {
		return nil, visit{}, err
	}
	address, err := url.Parse(answer.Msg.GetAddress())
	if err != nil {
		return nil, visit{}, err
	}
	v := &visitor{at: "https://" + member.Listen.Console}
	v.ctx, v.cancel = chromedp.NewContext(chromium, chromedp.WithNewBrowserContext())
	_, err = chromedp.Call(v.ctx, network.SetCacheDisabled, network.SetCacheDisabledParams{CacheDisabled: true})
	if err == nil {
		_, err = chromedp.Call(v.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: watched})
	}
	if err == nil {
		err = chromedp.Do(v.ctx,
			chromedp.EmulateViewport(1280, 900), chromedp.Navigate(v.at+address.Path), chromedp.Click(chromedp.CSS("main button")),
			chromedp.WaitVisible(chromedp.CSS("#shown[data-live]")),
		)
	}
	var first visit
	if err == nil {
		first, err = v.seen(looks)
	}
	if err != nil {
		v.cancel()
		return nil, visit{}, fmt.Errorf("log in to the console with Chromium: %w", err)
	}
	return v, first, nil
}

// visit opens the map, as somebody does who was not there before, and looks at it for a while.
func (v *visitor) visit(looks time.Duration) (visit, error) {
	if _, err := chromedp.Run(v.ctx, chromedp.NavigateResponse(v.at+"/")); err != nil {
		return visit{}, fmt.Errorf("open the map: %w", err)
	}
	return v.seen(looks)
}

// seen tells of the page that is open, after it was looked at for a while.
func (v *visitor) seen(looks time.Duration) (visit, error) {
	if err := testbed.Pause(v.ctx, looks); err != nil {
		return visit{}, err
	}
	return chromedp.Run(v.ctx, chromedp.Evaluate[visit](told))
}
