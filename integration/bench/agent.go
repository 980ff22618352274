package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"connectrpc.com/connect"

	"berth/integration/bench/report"
	"berth/integration/bench/testbed"
	"berth/integration/lab"
	berthv1 "berth/shared/gen/berth/v1"
)

// What the agent is compared to: Debian's prometheus-libvirt-exporter, asked as often as the agent takes a sample.
const (
	exporter        = "exporter"
	exporterProgram = "prometheus-libvirt-exporter"
	exporterAddress = "127.0.0.1:9177"
)

// window is how many samples or scrapes are taken together. One full inventory falls into it, as it does in operation.
const window = 15

// fullHost is the number of guests that the goals are for.
const fullHost = 200

// agentCost is what A1 to A4 measure.
type agentCost struct {
	raised *testbed.RaisedLab
	host   *lab.Host
	every  time.Duration // between two samples, as the agent takes them
	guests int

	own, libvirtd                 report.Figures // CPU seconds a sample
	exporterOwn, exporterLibvirtd report.Figures // CPU seconds a scrape
	scrape                        report.Figures // seconds a scrape
	idle                          float64        // CPU seconds of libvirtd a second when nobody asks
	resident, exporterResident    testbed.Memory
	calm, hung                    []sample
	hungScrape                    string
}

// sample is what is known of one of the agent's samples.
type sample struct {
	sequence uint64
	finished time.Time
	took     float64 // seconds
	read     int     // guests with figures
}

func measureAgent(ctx context.Context, b *bench) (_ []report.Row, err error) {
	if _, err := exec.LookPath(exporterProgram); err != nil {
		return nil, fmt.Errorf("what the agent is compared to is missing, and 'make bench' installs it: %w", err)
	}
	r, err := testbed.RaiseLab(ctx, b.programs, lab.Options{Name: "crowd", Hosts: 1, Coordinators: 1})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Down()) }()
	a := agentCost{raised: r, host: r.Hosts[0], guests: b.guests}
	if err := testbed.Crowd(ctx, r, a.host, b.guests); err != nil {
		return nil, fmt.Errorf("create %d guests: %w", b.guests, err)
	}
	if err := a.host.Start(ctx, exporter, exporterProgram, "--web.listen-address="+exporterAddress); err != nil {
		return nil, err
	}
	if err := a.awaitCrowd(ctx); err != nil {
		return nil, err
	}
	for range b.rounds(1, 3) {
		if err := a.round(ctx); err != nil {
			return nil, err
		}
	}
	if err := a.hang(ctx); err != nil {
		return nil, err
	}
	return a.rows(), nil
}

// telemetry is the node's last sample.
func (a *agentCost) telemetry(ctx context.Context) (*berthv1.NodeTelemetry, error) {
	answer, err := testbed.Patiently(ctx, func() (*connect.Response[berthv1.GetNodeResponse], error) {
		return a.raised.API.GetNode(ctx, connect.NewRequest(&berthv1.GetNodeRequest{Node: a.host.Name}))
	})
	if err != nil {
		return nil, err
	}
	if answer.Msg.GetNode().GetTelemetry() == nil {
		return nil, errors.New("the node has sent no telemetry")
	}
	return answer.Msg.GetNode().GetTelemetry(), nil
}

// awaitCrowd waits until the agent reports on all guests, and learns how often it does.
func (a *agentCost) awaitCrowd(ctx context.Context) error {
	err := testbed.Await(ctx, "the agent to report all guests", time.Minute, func(ctx context.Context) error {
		telemetry, err := a.telemetry(ctx)
		if err != nil {
			return err
		}
		if n := len(telemetry.GetDomains()); n != a.guests {
			return fmt.Errorf("the agent reports %d of %d guests", n, a.guests)
		}
		return nil
	})
	if err != nil {
		return err
	}
	samples, err := a.watch(ctx, 4)
	if err != nil {
		return err
	}
	last := len(samples) - 1
	apart := samples[last].finished.Sub(samples[0].finished) / time.Duration(samples[last].sequence-samples[0].sequence)
	a.every = apart.Round(100 * time.Millisecond)
	return nil
}

// watch collects the next n samples.
func (a *agentCost) watch(ctx context.Context, n int) ([]sample, error) {
	var samples []sample
	limit, cancel := context.WithTimeout(ctx, time.Duration(n)*10*time.Second+time.Minute)
	defer cancel()
	for len(samples) < n {
		telemetry, err := a.telemetry(limit)
		if err != nil {
			return nil, err
		}
		if len(samples) == 0 || samples[len(samples)-1].sequence != telemetry.GetSequence() {
			samples = append(samples, sampleOf(telemetry))
		}
		select {
		case <-limit.Done():
			return nil, fmt.Errorf("%d of %d samples arrived: %w", len(samples), n, limit.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
	return samples, nil
}

func sampleOf(telemetry *berthv1.NodeTelemetry) sample {
	s := sample{sequence: telemetry.GetSequence(), took: telemetry.GetCollectSeconds()}
	s.finished = telemetry.GetSampledAt().AsTime().Add(time.Duration(s.took * float64(time.Second)))
	for _, guest := range telemetry.GetDomains() {
		if guest.MaximumMemoryBytes != nil && guest.Vcpus != nil {
			s.read++
		}
	}
	return s
}

// round measures the agent and the exporter, one after the other: never both at the same libvirtd.
func (a *agentCost) round(ctx context.Context) error {
	if err := a.sampleWindow(ctx); err != nil {
		return err
	}
	if err := a.host.Pause(lab.Agent); err != nil {
		return err
	}
	if err := errors.Join(a.scrapeWindow(ctx), a.host.Continue(lab.Agent)); err != nil {
		return err
	}
	// The agent comes back with a new session and an inventory that belongs to nobody's window.
	_, err := a.watch(ctx, 4)
	return err
}

// spent is the CPU time of the agent or the exporter, and of libvirtd.
func (a *agentCost) spent(service string) (own, libvirtd time.Duration, err error) {
	if own, err = testbed.CPUTime(a.host.Pid(service)); err != nil {
		return 0, 0, err
	}
	libvirtd, err = testbed.CPUTime(a.host.Pid(lab.Libvirtd))
	return own, libvirtd, err
}

func (a *agentCost) sampleWindow(ctx context.Context) error {
	before, err := a.telemetry(ctx)
	if err != nil {
		return err
	}
	own, libvirtd, err := a.spent(lab.Agent)
	if err != nil {
		return err
	}
	if err := testbed.Pause(ctx, window*a.every); err != nil {
		return err
	}
	ownAfter, libvirtdAfter, err := a.spent(lab.Agent)
	if err != nil {
		return err
	}
	after, err := a.telemetry(ctx)
	if err != nil {
		return err
	}
	samples := float64(after.GetSequence() - before.GetSequence())
	if samples == 0 {
		return fmt.Errorf("no sample in %s: %w", window*a.every, report.ErrNothing)
	}
	a.own = append(a.own, (ownAfter-own).Seconds()/samples)
	a.libvirtd = append(a.libvirtd, (libvirtdAfter-libvirtd).Seconds()/samples)
	a.resident, err = testbed.Resident(a.host.Pid(lab.Agent))
	return err
}

func (a *agentCost) scrapeWindow(ctx context.Context) error {
	if _, err := a.scrapeOnce(ctx); err != nil {
		return err
	}
	_, quiet, err := a.spent(exporter)
	if err != nil {
		return err
	}
	const rest = 5 * time.Second
	if err := testbed.Pause(ctx, rest); err != nil {
		return err
	}
	own, libvirtd, err := a.spent(exporter)
	if err != nil {
		return err
	}
	a.idle = (libvirtd - quiet).Seconds() / rest.Seconds()
	for range window {
		took, err := a.scrapeOnce(ctx)
		if err != nil {
			return err
		}
		a.scrape.Add(took)
		if err := testbed.Pause(ctx, max(a.every-took, 0)); err != nil {
			return err
		}
	}
	ownAfter, libvirtdAfter, err := a.spent(exporter)
	if err != nil {
		return err
	}
	a.exporterOwn = append(a.exporterOwn, (ownAfter-own).Seconds()/window)
	a.exporterLibvirtd = append(a.exporterLibvirtd, (libvirtdAfter-libvirtd).Seconds()/window)
	a.exporterResident, err = testbed.Resident(a.host.Pid(exporter))
	return err
}

// scrapeOnce asks the exporter for its metrics, on the host.
func (a *agentCost) scrapeOnce(ctx context.Context) (time.Duration, error) {
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		return testbed.DialFrom(ctx, a.host.Pid(exporter), network, address)
	}}}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+exporterAddress+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	answer, err := client.Do(request)
	if err != nil {
		return 0, fmt.Errorf("scrape the exporter: %w", err)
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return time.Since(begun), err
}

// hang stops one guest's process for as long as two windows take and watches what becomes of the samples.
func (a *agentCost) hang(ctx context.Context) (err error) {
	if a.calm, err = a.watch(ctx, window); err != nil {
		return err
	}
	guests := a.host.QEMUs()
	if len(guests) == 0 {
		return errors.New("the host has no guests")
	}
	slices.SortFunc(guests, func(x, y lab.QEMU) int { return x.PID - y.PID })
	victim, err := os.FindProcess(guests[len(guests)/2].PID)
	if err != nil {
		return err
	}
	if err := victim.Signal(syscall.SIGSTOP); err != nil {
		return fmt.Errorf("stop guest %s: %w", guests[len(guests)/2].Name, err)
	}
	defer func() { err = errors.Join(err, victim.Signal(syscall.SIGCONT)) }()
	if a.hung, err = a.watch(ctx, 2*window); err != nil {
		return err
	}
	const longest = 20 * time.Second
	limited, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	switch took, err := a.scrapeOnce(limited); {
	case errors.Is(err, context.DeadlineExceeded):
		a.hungScrape = "no answer in " + longest.String()
	case err != nil:
		return err
	default:
		a.hungScrape = report.Seconds(took.Seconds())
	}
	return nil
}

// late is by how much each sample came later after the one before than it should have.
func (a *agentCost) late(samples []sample) report.Figures {
	var all report.Figures
	for i := 1; i < len(samples); i++ {
		due := time.Duration(samples[i].sequence-samples[i-1].sequence) * a.every
		all.Add(max(samples[i].finished.Sub(samples[i-1].finished)-due, 0))
	}
	return all
}

// fewest is the smallest number of guests that a sample had figures of.
func fewest(samples []sample) int {
	least := samples[0].read
	for _, s := range samples {
		least = min(least, s.read)
	}
	return least
}

func took(samples []sample) (all report.Figures) {
	for _, s := range samples {
		all = append(all, s.took)
	}
	return all
}

func (a *agentCost) rows() []report.Row {
	own, ratio := a.own.Median(), a.libvirtd.Median()/a.exporterLibvirtd.Median()
	late := a.late(a.hung)
	rows := []report.Row{
		{
			Goal: "A1",
			What: fmt.Sprintf("the agent's own CPU for one sample of %d guests, a share of the inventory included", a.guests),
			Measured: fmt.Sprintf("%s\n%s %% of a core at one each %s", a.own.Spread(report.Seconds),
				report.Digits(100*own/a.every.Seconds()), a.every),
			Against: exporterProgram + ", a scrape: " + a.exporterOwn.Spread(report.Seconds),
			Wanted:  "<= 10 ms, <= 0.1 % of a core at 10 s (stretch 4 ms)", Verdict: report.Judge(own, 0.010),
		},
		{
			Goal: "A2", What: "libvirtd's CPU for one sample",
			Measured: a.libvirtd.Spread(report.Seconds),
			Against: fmt.Sprintf("libvirtd's for a scrape: %s\nratio: %s; nobody asking: %s a second",
				a.exporterLibvirtd.Spread(report.Seconds), report.Times(ratio), report.Seconds(a.idle)),
			Wanted: "<= 0.9x exporter (stretch 0.3x)", Verdict: report.Judge(ratio, 0.9),
		},
		{
			Goal: "A3", What: "the agent's resident memory", Measured: a.resident.String(),
			Against: exporterProgram + ": " + a.exporterResident.String(),
			Wanted:  "<= 30 MB (stretch 20 MB)", Verdict: report.Judge(a.resident.All, 30e6),
		},
		{
			Goal: "A4", What: "one guest's process stopped: how much later a sample comes than it should",
			Measured: fmt.Sprintf("latest %s, %s", report.Seconds(late.Quantile(1)), late.Spread(report.Seconds)),
			Against:  "none stopped: latest " + report.Seconds(a.late(a.calm).Quantile(1)) + "\n" + exporterProgram + ": " + a.hungScrape,
			Wanted:   "<= 1 s (stretch 0 for the others)", Verdict: report.Judge(late.Quantile(1), 1),
		},
		{
			What:     "time to take a sample; guests with figures in the worst one",
			Measured: fmt.Sprintf("stopped: %s; %d of %d", took(a.hung).Spread(report.Seconds), fewest(a.hung), a.guests),
			Against: fmt.Sprintf("none stopped: %s; %d of %d\nscrape: %s",
				took(a.calm).Spread(report.Seconds), fewest(a.calm), a.guests, a.scrape.Spread(report.Seconds)),
		},
	}
	if a.guests != fullHost {
		for i := range rows {
			rows[i].Verdict = report.NoVerdict
		}
	}
	return rows
}
