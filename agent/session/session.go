// Package session is the agent's end of the stream to the leader: it says hello, sends the whole inventory, samples and
// changes, receives commands and sends their results. When the stream breaks it finds the leader again.
//
// Goroutines of one connection: run receives, pump is the only one that sends, sample takes samples, watch turns hypervisor
// events and requests into reports, and each task has its own. All of them end with the connection's context.
package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"
	"github.com/hashicorp/go-hclog"
	"golang.org/x/time/rate"

	"berth/agent/hypervisor"
	"berth/agent/tasks"
	"berth/agent/telemetry"
	"berth/shared/capability"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
)

// Jobs run commands. Package jobs implements it.
type Jobs interface {
	// Do starts a command, attaches to a running one, or repeats its earlier answer. It does not wait.
	Do(ctx context.Context, command *berthv1.Command)
	Cancel(operationID string, step uint32)
	Results() <-chan *berthv1.CommandResult
	Progress() <-chan *berthv1.CommandProgress
	Running() []string
	// Saw takes an event of the hypervisor.
	Saw(event hypervisor.Event)
	// LastRuns are what guests of this node run with whose devices were changed, by UUID. Some have ended.
	LastRuns() []telemetry.LastRun
	// Endings are how guests ended here, by UUID, as far as events have shown.
	Endings() []telemetry.Ending
	// Ailing is why the node should get no VMs; nil: it may.
	Ailing() error
	// Follow gets the term of a leader that has welcomed this node; an error refuses that leader.
	Follow(term uint64) error
}

// Tasks do work that belongs to no operation. Package tasks implements it.
type Tasks interface {
	// Do does a task, waits for its end and returns how it ended. Dig opens the tunnel of a ticket.
	Do(ctx context.Context, task *berthv1.Task, dig tasks.Dig) *berthv1.TaskResult
}

// Sampler makes samples. Package telemetry implements it.
type Sampler interface {
	Sample(ctx context.Context) *berthv1.NodeTelemetry
}

// Collector makes inventories. Package telemetry implements it.
type Collector interface {
	Inventory(ctx context.Context) *berthv1.InventoryReport
}

// Watchdog keeps the node alive while leases last. Package watchdog implements it.
type Watchdog interface {
	Lease(until time.Time)
	Release()
	// Asleep is for how long the host has been asleep since it booted.
	Asleep() time.Duration
	// Armed is the time without a lease after which the node is reset; 0: it is not.
	Armed() time.Duration
}

// Health tries what a host needs to be of use. Package hoststat implements it.
type Health interface {
	// Pools names the folders of the storage pools, by the pools' names.
	Pools(folders map[string]string)
	// Ailing says what is wrong, and since when.
	Ailing() (reasons []string, since time.Time)
}

// Config is what a session needs.
type Config struct {
	NodeID    string
	ClusterID string
	// Hardware is the identity of the machine, and HardwareSource what that is: a machine with a copy of this one's disk has another.
	Hardware, HardwareSource string

	Incarnation string // changes with every boot and every start of the agent
	Version     string
	Addresses   []string          // host:port of the coordinators' agent listeners
	Remember    func([]string)    // told when the coordinators name other addresses
	Trusted     func([]string)    // told the IDs of the authorities that the coordinators trust, the one that signs first
	Alive       func(leader bool) // told at every sign of life, for the service manager
	Client      *http.Client
	Hypervisor  hypervisor.Hypervisor
	Sampler     Sampler
	Collector   Collector
	Jobs        Jobs
	Tasks       Tasks
	Health      Health   // nil: nothing is tried
	Watchdog    Watchdog // nil: the node has none
	Logger      hclog.Logger
}

// Limits of the search for the leader. An election takes about a second. The first tries are quick, so that a failover is
// short. Later ones are slow, so that a coordinator in trouble is left alone. A coordinator that answers but knows no leader
// is not in trouble: it waits some seconds for one before it answers, so it sets the pace.
const (
	quickTries   = 12
	quickPause   = 500 * time.Millisecond
	longestPause = 30 * time.Second
	slowerAtOnce = 4 // tries are skipped by one that is refused
	welcomeWait  = 5 * time.Second
	pulseEvery   = time.Second
	// listAgain is the part of the interval between two inventories after which a failed one is repeated.
	listAgain = 10
	// repeatEvery is how often the log says that the same coordinator does not answer.
	repeatEvery = time.Minute
)

// Session keeps one stream to the leader open.
type Session struct {
	Config
	events   chan hypervisor.Event
	resync   chan struct{} // gets one when the inventory may have changed
	whole    chan struct{} // gets one when the coordinator asks for all of it
	sequence uint64
	round    []string                   // the addresses in the order in which they are tried
	troubles map[string]*rate.Sometimes // of the log, by address, since the last session

	tasks    sync.WaitGroup
	slots    chan struct{} // one for each task in work
	consoles chan struct{} // one for each open console
	samples  sent
	down     time.Time // since when libvirt is not connected; zero: it is
}

// New makes a session that Run opens.
func New(config Config) *Session {
	return &Session{
		Config: config,
		// A burst of events beyond this becomes one full inventory.
		events:   make(chan hypervisor.Event, 256),
		resync:   make(chan struct{}, 1),
		whole:    make(chan struct{}, 1),
		troubles: make(map[string]*rate.Sometimes),
		slots:    make(chan struct{}, tasksAtOnce),
		consoles: make(chan struct{}, consolesAtOnce),
	}
}

// Run connects, serves and connects again until the context ends. It returns the context's error.
func (s *Session) Run(ctx context.Context) error {
	subscribed := make(chan error, 1)
	go func() { subscribed <- s.Hypervisor.Subscribe(ctx, s.deliver) }()
	defer func() { <-subscribed }()
	defer s.tasks.Wait()

	tries := 0
	next := ""
	for ctx.Err() == nil {
		address := next
		if address == "" {
			address = s.choose()
		}
		next = ""
		served, redirect, err := s.connect(ctx, address)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case redirect != nil:
			s.remember(redirect.GetAgentAddresses())
			next = redirect.GetLeaderAddress()
			s.Logger.Debug("sent on to the leader", "from", address, "to", next)
		case err != nil:
			s.complain(address, err)
			if connect.CodeOf(err) == connect.CodePermissionDenied {
				tries = max(tries, quickTries+slowerAtOnce) // asking again at once changes nothing
			}
		}
		if served || redirect != nil && next == "" {
			tries = 0
		}
		tries++
		if next != "" && tries < quickTries {
			continue // the leader is known: no reason to wait
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause(tries)):
		}
	}
	return ctx.Err()
}

// choose is the next coordinator to try. All take turns, in an order that every agent draws for itself. So the number of
// tries is never larger than the number of dead coordinators plus one.
func (s *Session) choose() string {
	if len(s.round) != len(s.Addresses) {
		s.round = slices.Clone(s.Addresses)
		rand.Shuffle(len(s.round), func(i, k int) { s.round[i], s.round[k] = s.round[k], s.round[i] })
	}
	address := s.round[0]
	s.round = append(s.round[1:], address)
	return address
}

// complain logs why there is no session with a coordinator: at once, and again from time to time.
func (s *Session) complain(address string, err error) {
	if s.troubles[address] == nil {
		s.troubles[address] = &rate.Sometimes{First: 1, Interval: repeatEvery}
	}
	s.troubles[address].Do(func() { s.Logger.Warn("session ended", "coordinator", address, "error", err) })
}

// pause is a full-jitter back-off, so that a thousand agents do not reconnect at once.
func pause(tries int) time.Duration {
	if tries <= quickTries {
		return time.Duration(rand.Int64N(int64(quickPause)))
	}
	most := min(longestPause, quickPause<<min(tries-quickTries, 6))
	return quickPause/2 + time.Duration(rand.Int64N(int64(most)))
}

func (s *Session) remember(addresses []string) {
	if len(addresses) == 0 {
		return
	}
	known := slices.Sorted(slices.Values(addresses))
	if slices.Equal(known, slices.Sorted(slices.Values(s.Addresses))) {
		return
	}
	s.Addresses, s.round = known, nil
	if s.Remember != nil {
		s.Remember(known)
	}
}

func (s *Session) trusted(authorities []string) {
	if s.Trusted != nil && len(authorities) > 0 {
		s.Trusted(authorities)
	}
}

func (s *Session) deliver(event hypervisor.Event) {
	s.Jobs.Saw(event)
	if event.Kind == hypervisor.EventRan {
		return
	}
	select {
	case s.events <- event:
	default:
		s.askInventory()
	}
}

func (s *Session) askInventory() { ask(s.resync) }

func ask(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// connection is one open stream.
type connection struct {
	*Session
	address string
	stream  *connect.BidiStreamForClient[berthv1.SessionRequest, berthv1.SessionResponse]
	outbox  chan *berthv1.SessionRequest
	digests bool // the coordinator understands them
}

// connect opens one stream and serves it to its end. Served tells whether the leader welcomed it.
func (s *Session) connect(ctx context.Context, address string) (served bool, redirect *berthv1.Redirect, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// The welcome has a deadline, the stream has none.
	impatience := time.AfterFunc(welcomeWait, cancel)
	defer impatience.Stop()

	client := berthv1connect.NewAgentServiceClient(s.Client, "https://"+address)
	stream := client.Session(ctx)
	// An HTTP/2 transport obeys the context only when the request's body has ended. Without this, Receive on a cancelled stream
	// would hang until the coordinator gives it up.
	hangUp := context.AfterFunc(ctx, func() { _ = stream.CloseRequest() })
	defer hangUp()
	defer func() {
		_ = stream.CloseRequest()
		_ = stream.CloseResponse()
	}()
	c := &connection{Session: s, address: address, stream: stream, outbox: make(chan *berthv1.SessionRequest, 256)}
	if err := c.send(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_Hello{Hello: &berthv1.Hello{
		NodeId: s.NodeID, Incarnation: s.Incarnation, Version: s.Version, ClusterId: s.ClusterID,
		RunningOperations: s.Jobs.Running(), WatchdogSeconds: s.armed().Seconds(),
		Hardware: s.Hardware, HardwareSource: s.HardwareSource, Capabilities: capability.Names(),
	}}}); err != nil {
		return false, nil, c.reason(err)
	}
	first, err := stream.Receive()
	if err != nil {
		if !impatience.Stop() {
			return false, nil, fmt.Errorf("no welcome within %s", welcomeWait)
		}
		return false, nil, c.reason(err)
	}
	impatience.Stop()
	if redirect := first.GetRedirect(); redirect != nil {
		return false, redirect, nil
	}
	welcome := first.GetWelcome()
	if welcome == nil {
		return false, nil, fmt.Errorf("the coordinator's first message is a %T, not a welcome", first.GetMessage())
	}
	if id := welcome.GetClusterId(); id != s.ClusterID {
		return false, nil, fmt.Errorf("the coordinator belongs to cluster %s, this node to %s", id, s.ClusterID)
	}
	if err := s.Jobs.Follow(welcome.GetTerm()); err != nil {
		return false, nil, fmt.Errorf(
			"the leader is not followed: %w; it may be a coordinator that another one was recovered without: stop it, and empty its data directory",
			err,
		)
	}
	if welcome.GetRemoved() {
		s.Logger.Warn("this node was removed from its cluster: it is given no orders, its guests are looked at, and copies of VMs are " +
			"suspended; enrol it again with 'berth-agent join', or end this with 'systemctl disable --now berth-agent'")
	}
	s.Logger.Info("connected to the leader", "coordinator", address, "term", welcome.GetTerm())
	clear(s.troubles)
	s.remember(welcome.GetAgentAddresses())
	s.trusted(welcome.GetAuthorities())
	redirect, err = c.run(ctx, cancel, welcome)
	return true, redirect, err
}

// reason prefers what the server said over what the transport saw.
func (c *connection) reason(err error) error {
	if errors.Is(err, io.EOF) {
		if _, said := c.stream.Receive(); said != nil {
			return said
		}
	}
	return err
}

func (c *connection) run(ctx context.Context, cancel func(), welcome *berthv1.Welcome) (*berthv1.Redirect, error) {
	c.digests = welcome.GetDigests()
	workers := []func(context.Context) error{
		c.pump,
		func(ctx context.Context) error {
			return c.sample(ctx, interval(welcome.GetTelemetryIntervalSeconds(), 2*time.Second))
		},
		func(ctx context.Context) error {
			return c.watch(ctx, interval(welcome.GetInventoryIntervalSeconds(), 30*time.Second))
		},
	}
	ended := make(chan error, len(workers))
	for _, work := range workers {
		go func() {
			err := work(ctx)
			cancel() // one is done: so is the connection
			ended <- err
		}()
	}
	c.askInventory()
	redirect, err := c.receive(ctx)
	cancel()
	for range workers {
		if worker := <-ended; worker != nil && !errors.Is(worker, context.Canceled) {
			err = errors.Join(err, worker)
		}
	}
	return redirect, err
}

func interval(seconds float64, otherwise time.Duration) time.Duration {
	if seconds <= 0 {
		return otherwise
	}
	return time.Duration(seconds * float64(time.Second))
}

func (c *connection) receive(ctx context.Context) (*berthv1.Redirect, error) {
	for {
		message, err := c.stream.Receive()
		if err != nil {
			return nil, err
		}
		c.alive()
		switch {
		case message.GetCommand() != nil:
			c.Jobs.Do(ctx, message.GetCommand())
		case message.GetCancel() != nil:
			c.Jobs.Cancel(message.GetCancel().GetOperationId(), message.GetCancel().GetStep())
		case message.GetTask() != nil:
			c.do(ctx, message.GetTask())
		case message.GetResync() != nil:
			c.Logger.Debug("the coordinator asks for an inventory", "reason", message.GetResync().GetReason())
			ask(c.whole)
		case message.GetMembers() != nil:
			c.remember(message.GetMembers().GetAgentAddresses())
			c.trusted(message.GetMembers().GetAuthorities())
		case message.GetLease() != nil:
			c.leased(message.GetLease())
		case message.GetRedirect() != nil:
			return message.GetRedirect(), nil
		}
	}
}

func (c *connection) alive() {
	if c.Alive != nil {
		c.Alive(true)
	}
}

func (c *connection) send(message *berthv1.SessionRequest) error {
	c.sequence++
	message.Sequence = c.sequence
	if message.GetTelemetry() != nil {
		c.samples.note(c.sequence, time.Now(), c.asleep())
	}
	return c.stream.Send(message)
}

// pump is the only sender once the stream is open. Results and progress come directly from the jobs.
func (c *connection) pump(ctx context.Context) error {
	for {
		var message *berthv1.SessionRequest
		select {
		case <-ctx.Done():
			return nil
		case result := <-c.Jobs.Results():
			message = &berthv1.SessionRequest{Message: &berthv1.SessionRequest_Result{Result: result}}
		case progress := <-c.Jobs.Progress():
			message = &berthv1.SessionRequest{Message: &berthv1.SessionRequest_Progress{Progress: progress}}
		case message = <-c.outbox:
		}
		if err := c.send(message); err != nil {
			return err
		}
		c.alive()
	}
}

// put queues a message. A message that matters only while it is fresh is dropped when the queue is full.
func (c *connection) put(ctx context.Context, message *berthv1.SessionRequest, perishable bool) {
	if perishable {
		select {
		case c.outbox <- message:
		default:
		}
		return
	}
	select {
	case c.outbox <- message:
	case <-ctx.Done():
	}
}

// sample takes one sample at once, the next one at a random time within the interval, and then one in each interval. So
// agents that reconnect together do not report together.
func (c *connection) sample(ctx context.Context, every time.Duration) error {
	ticker := time.NewTicker(every/2 + rand.N(every/2))
	defer ticker.Stop()
	for first := true; ; first = false {
		sample := c.Sampler.Sample(ctx)
		if ctx.Err() != nil {
			return nil
		}
		sample.WatchdogSeconds = c.armed().Seconds()
		if err := c.Jobs.Ailing(); err != nil {
			sample.Ailing = err.Error()
		}
		c.put(ctx, &berthv1.SessionRequest{Message: &berthv1.SessionRequest_Telemetry{Telemetry: sample}}, true)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if first {
			ticker.Reset(every)
		}
	}
}

// watch reports changes at once, and everything from time to time. A libvirtd that hangs sends no event, so it is asked every
// second. After a failed listing the node gets no VMs until one succeeds, and perhaps no event will come: so the next listing
// is soon.
func (c *connection) watch(ctx context.Context, every time.Duration) error {
	ticker, pulse := time.NewTicker(every), time.NewTicker(pulseEvery)
	defer ticker.Stop()
	defer pulse.Stop()
	var again <-chan time.Time
	list := func(how extent) {
		again = nil
		if !c.reportInventory(ctx, how) {
			again = time.After(every / listAgain)
		}
	}
	was := c.reportLibvirt(ctx)
	for {
		select {
		case <-ctx.Done():
			return nil
		case event := <-c.events:
			if event.UUID != "" {
				c.report(ctx, event)
				continue
			}
			c.reportLibvirt(ctx)
			list(inShort)
		case <-c.resync:
			list(inShort)
		case <-c.whole:
			list(inFull)
		case <-again:
			list(inShort)
		case <-pulse.C:
			if is := c.health(); is != was {
				was = c.reportLibvirt(ctx)
				list(inShort)
			}
		case <-ticker.C:
			was = c.reportLibvirt(ctx)
			list(inShort)
		}
	}
}

// reportLibvirt tells whether libvirt can be used, and what else of the host ails. It returns that in words.
func (c *connection) reportLibvirt(ctx context.Context) (told string) {
	told = c.health()
	connected, err := c.Hypervisor.Connected()
	status := &berthv1.LibvirtStatus{Connected: connected}
	if err != nil {
		status.Error = err.Error()
	}
	now := time.Now()
	switch {
	case connected:
		c.down = time.Time{}
	case c.down.IsZero():
		c.down = now
	}
	since := c.down
	if c.Health != nil {
		var ailing time.Time
		if status.Ailments, ailing = c.Health.Ailing(); !ailing.IsZero() && (since.IsZero() || ailing.Before(since)) {
			since = ailing
		}
	}
	if !since.IsZero() {
		status.SinceSeconds = now.Sub(since).Seconds()
	}
	c.put(ctx, &berthv1.SessionRequest{Message: &berthv1.SessionRequest_Libvirt{Libvirt: status}}, false)
	return told
}

// health is in words whether libvirt is connected and what else ails: what changes it is told at once.
func (c *connection) health() string {
	connected, _ := c.Hypervisor.Connected()
	words := []string{strconv.FormatBool(connected)}
	if c.Health != nil {
		reasons, _ := c.Health.Ailing()
		words = append(words, reasons...)
	}
	return strings.Join(words, "; ")
}

// report reports the present state of one domain.
func (c *connection) report(ctx context.Context, event hypervisor.Event) {
	// The event is only a hint. A look shows what is true now.
	domain, err := hypervisor.Look(ctx, c.Hypervisor, event.UUID, event.Name)
	switch {
	case errors.Is(err, hypervisor.ErrNotFound):
		domain = hypervisor.Domain{UUID: event.UUID, Name: event.Name, State: hypervisor.Absent}
	case err != nil:
		c.askInventory()
		return
	}
	message := telemetry.Domain(domain)
	for _, one := range c.Jobs.Endings() {
		if one.UUID == event.UUID {
			telemetry.AddEnding(message, one)
		}
	}
	telemetry.AddLastRun(message, c.Jobs.LastRuns)
	c.put(ctx, &berthv1.SessionRequest{Message: &berthv1.SessionRequest_DomainChange{DomainChange: &berthv1.DomainChange{
		Domain: message, Event: event.Kind,
	}}}, false)
}
