// Package asking measures what it costs that each call asks whether its caller is on record, and that live sessions are asked again when
// identities change. What is not asked is the same call to the same coordinator behind a keeper without records: it lets in whoever has a
// certificate, as that of a member does which has not received the state yet.
package asking

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"berth/coordinator/api/gate"
	"berth/coordinator/identities"
	"berth/coordinator/state"
	"berth/integration/bench/report"
	"berth/integration/bench/testbed"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/rpc"
)

// What the asking may cost: of a start, and of G1, which is a quarter of a core for ten thousand agents.
const (
	mostTimes = 1.02
	agentCore = 0.25
	mostCore  = agentCore * (mostTimes - 1)
)

const (
	renewEvery = 20 * 24 * time.Hour       // of a certificate
	lookAgain  = 250 * time.Millisecond    // of the keeper
	settled    = 2*lookAgain + lookAgain/2 // after a change: it has asked twice
	changes    = 4                         // in a window
)

// Goals are those that All measures.
var Goals = []string{"R1i", "G1i"}

// Size is how much is measured.
type Size struct {
	Recorded int // identities, each with a live session in G1i
	Starts   int // by each door
	Calls    int // of the gate alone, in each turn
	Turns    int
	Windows  int // of G1i, with changes of identities and with others
}

// Goal is what the goals are set for.
var Goal = Size{Recorded: 10_000, Starts: 2000, Calls: 20_000, Turns: 20, Windows: 6}

// Quick shows that everything works.
var Quick = Size{Recorded: 200, Starts: 20, Calls: 200, Turns: 2, Windows: 1}

const nodes = 5

// All takes all rows, with data in a folder.
func All(ctx context.Context, folder string, quick bool) ([]report.Row, error) {
	if quick {
		return Measure(ctx, folder, Quick)
	}
	return Measure(ctx, folder, Goal)
}

// Measure takes all rows on one site.
func Measure(ctx context.Context, folder string, size Size) (rows []report.Row, err error) {
	s, err := raise(ctx, filepath.Join(folder, "asking"), nodes, size.Recorded)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	keeper := gate.NewKeeper(s.store, time.Now)
	starts, err := s.starts(ctx, keeper, size)
	if err != nil {
		return nil, err
	}
	again, err := s.again(ctx, keeper, size)
	return append(starts, again...), err
}

// doors are the same API, once behind the records and once behind none.
type doors struct {
	asked, unasked berthv1connect.BerthServiceClient
}

// starts are R1i: StartVM by one door and the other, in turn.
func (s *site) starts(ctx context.Context, keeper *gate.Keeper, size Size) ([]report.Row, error) {
	var d doors
	var err error
	if d.asked, err = s.door(ctx, keeper); err != nil {
		return nil, err
	}
	if d.unasked, err = s.door(ctx, gate.NewKeeper(state.NewStore(), time.Now)); err != nil {
		return nil, err
	}
	whole, err := s.pair(ctx, d, "vm", size.Starts, false)
	if err != nil {
		return nil, err
	}
	dry, err := s.pair(ctx, d, "dry", size.Starts, true)
	if err != nil {
		return nil, err
	}
	alone, err := s.gateAlone(keeper, size)
	if err != nil {
		return nil, err
	}
	share := 1 + alone.Median()/whole.unasked.Median()
	return []report.Row{
		{
			Goal: "R1i", What: fmt.Sprintf("StartVM (one coordinator, mutual TLS, fsync) whose caller is asked for among %d records", size.Recorded),
			Measured: whole.asked.Latency() + ": " + report.Times(whole.ratio()), Against: "not asked: " + whole.unasked.Latency(),
			Wanted: "p50 <= " + report.Times(mostTimes), Verdict: report.Judge(whole.ratio(), mostTimes),
		},
		{
			What:     "the same without the commit (dry run)",
			Measured: dry.asked.Latency() + ": " + report.Times(dry.ratio()), Against: "not asked: " + dry.unasked.Latency(),
		},
		{
			What:     "of it: CPU of all that the gate does for a call, less what reading the certificate takes",
			Measured: alone.Spread(report.Seconds), Against: "a start with that, by one without: " + report.Times(share),
		},
	}, nil
}

// pair are the figures of two doors.
type pair struct{ asked, unasked report.Figures }

func (p *pair) ratio() float64 { return p.asked.Median() / p.unasked.Median() }

// pair has VMs started by both doors in turn. Each one is the first of two as often as the other, and the first turns do not count.
func (s *site) pair(ctx context.Context, d doors, name string, n int, dry bool) (p pair, err error) {
	warm := n / 10
	for i := range warm + n {
		for turn := range 2 {
			client, figures := d.asked, &p.asked
			if (i+turn)%2 == 1 {
				client, figures = d.unasked, &p.unasked
			}
			took, err := s.start(ctx, client, fmt.Sprintf("%s%d-%d", name, i, turn), dry)
			if err != nil {
				return p, err
			}
			if i >= warm {
				figures.Add(took)
			}
		}
	}
	return p, nil
}

// silent takes an answer and keeps nothing of it.
type silent struct{ header http.Header }

func (s silent) Header() http.Header              { return s.header }
func (s silent) Write(data []byte) (int, error)   { return len(data), nil }
func (s silent) WriteHeader(int)                  {}
func (s silent) SetReadDeadline(time.Time) error  { return nil }
func (s silent) SetWriteDeadline(time.Time) error { return nil }

// from is a call as a server hands it on whose caller has proved a certificate.
func from(ctx context.Context, leaf *x509.Certificate, procedure string) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+localhost+procedure, http.NoBody)
	if err != nil {
		return nil, err
	}
	r.RemoteAddr = localhost + ":1"
	r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{leaf}}}
	return r, nil
}

// gateAlone is what the gate takes of one call, of many in turns with those whose certificate is read and that is all.
func (s *site) gateAlone(keeper *gate.Keeper, size Size) (report.Figures, error) {
	held, err := tls.LoadX509KeyPair(s.operator.Certificate, s.operator.Key)
	if err != nil {
		return nil, err
	}
	r, err := from(context.Background(), held.Leaf, berthv1connect.BerthServiceStartVMProcedure)
	if err != nil {
		return nil, err
	}
	passed := 0
	pass := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { passed++ })
	of := func(handler http.Handler) (float64, error) {
		before, err := spent()
		for range size.Calls {
			handler.ServeHTTP(silent{http.Header{}}, r)
		}
		after, failed := spent()
		return (after - before).Seconds() / float64(size.Calls), errors.Join(err, failed)
	}
	var takes report.Figures
	for range size.Turns {
		asked, err := of(keeper.Authorise(pass))
		read, failed := of(rpc.WithIdentity(pass))
		if err := errors.Join(err, failed); err != nil {
			return nil, err
		}
		takes = append(takes, max(asked-read, 0))
	}
	if passed != 2*size.Calls*size.Turns {
		return nil, fmt.Errorf("%d of %d calls were let through", passed, 2*size.Calls*size.Turns)
	}
	return takes, nil
}

// again is G1i: what it takes to ask for all live sessions again when the record of one changes, beside changes of something else.
func (s *site) again(ctx context.Context, keeper *gate.Keeper, size Size) ([]report.Row, error) {
	live, end := context.WithCancel(ctx)
	var sessions sync.WaitGroup
	defer sessions.Wait()
	defer end()
	sessions.Go(func() { keeper.Watch(live) })
	var began sync.WaitGroup
	handler := keeper.Authorise(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		began.Done()
		<-r.Context().Done()
	}))
	for n := range size.Recorded {
		r, err := from(live, leaf(n), berthv1connect.AgentServiceSessionProcedure)
		if err != nil {
			return nil, err
		}
		began.Add(1)
		sessions.Go(func() { handler.ServeHTTP(silent{http.Header{}}, r) })
	}
	began.Wait()
	var one report.Figures
	for range size.Windows {
		with, err := s.window(ctx, func(n int) state.Command {
			identity, _ := s.store.Snapshot().Identity(agent(n).ID)
			identity.Keys[0].ValidUntil = identity.Keys[0].ValidUntil.Add(time.Second)
			var command state.Command
			identities.Put(&command, identity)
			return command
		})
		if err != nil {
			return nil, err
		}
		without, err := s.window(ctx, func(n int) state.Command { return state.Command{Meta: map[string]string{"bench": fmt.Sprint(n)}} })
		if err != nil {
			return nil, err
		}
		one = append(one, max(with-without, 0)/changes)
	}
	steady := one.Median() * float64(size.Recorded) / renewEvery.Seconds()
	return []report.Row{
		{
			Goal: "G1i", What: fmt.Sprintf("cores that ask again for %d live sessions, as often as their certificates are renewed", size.Recorded),
			Measured: fmt.Sprintf("%.6f", steady),
			Against:  "CPU for one change: " + one.Spread(report.Seconds) + "; what is reported on a session asks for nothing",
			Wanted:   "<= " + report.Digits(mostCore) + ": 2 % of G1's " + report.Digits(agentCore), Verdict: report.Judge(steady, mostCore),
		},
		{
			What:     "the same while identities change all the time, as when an authority is replaced",
			Measured: report.Digits(one.Median()/2/lookAgain.Seconds()) + " cores",
		},
	}, nil
}

// window is the CPU time of this process while something changes, now and then.
func (s *site) window(ctx context.Context, change func(n int) state.Command) (float64, error) {
	before, err := spent()
	if err != nil {
		return 0, err
	}
	for n := range changes {
		if err := s.write(ctx, change(n)); err != nil {
			return 0, err
		}
		if err := testbed.Pause(ctx, settled); err != nil {
			return 0, err
		}
	}
	after, err := spent()
	return (after - before).Seconds(), err
}

func spent() (time.Duration, error) {
	var used unix.Rusage
	err := unix.Getrusage(unix.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()), err
}
