package webhook

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"berth/coordinator/consensus"
	"berth/coordinator/history"
	"berth/coordinator/model"
	"berth/coordinator/seal"
	"berth/coordinator/state"
)

var (
	keys   = seal.Keys{{1}, {2}}
	secret = []byte("thirty-two bytes that are secret")
)

// receiver is another program. It runs outside of virtual time: a try takes none.
type receiver struct {
	*httptest.Server
	t *testing.T

	mu    sync.Mutex
	says  func(message) int // status; nil: 200
	taken []message
	tries int
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{t: t}
	r.Server = httptest.NewTLSServer(http.HandlerFunc(r.handle))
	t.Cleanup(r.Close)
	return r
}

// plainReceiver is one without TLS, for thousands of tries.
func plainReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{t: t}
	r.Server = httptest.NewServer(http.HandlerFunc(r.handle))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) handle(w http.ResponseWriter, request *http.Request) {
	body, _ := io.ReadAll(request.Body)
	sum := hmac.New(sha256.New, secret)
	fmt.Fprintf(sum, "%s.%s.%s", request.Header.Get("webhook-id"), request.Header.Get("webhook-timestamp"), body)
	if want := "v1," + base64.StdEncoding.EncodeToString(sum.Sum(nil)); request.Header.Get("webhook-signature") != want {
		r.t.Errorf("signature %q, want %q", request.Header.Get("webhook-signature"), want)
	}
	var got message
	if err := json.Unmarshal(body, &got); err != nil || got.ID != request.Header.Get("webhook-id") || request.Method != http.MethodPost {
		r.t.Errorf("%s %s: %v", request.Method, body, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tries++
	if r.says != nil {
		if status := r.says(got); status != http.StatusOK {
			w.Header().Set("Location", "https://elsewhere.example/")
			http.Error(w, "not now", status)
			return
		}
	}
	r.taken = append(r.taken, got)
}

func (r *receiver) say(says func(message) int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.says = says
}

func (r *receiver) got() (taken []message, tries int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]message(nil), r.taken...), r.tries
}

// hook is a webhook for the receiver.
func (r *receiver) hook(kinds ...string) *Webhook {
	w := &Webhook{
		Name: "hook", URL: r.URL + "/berth", Kinds: kinds, Local: true, CreatedBy: "operator/alice", CreatedAt: time.Now().UTC(),
		HTTP: r.Certificate() == nil,
	}
	if !w.HTTP {
		w.CA = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw}))
	}
	if err := w.Check(); err != nil {
		r.t.Fatal(err)
	}
	if err := w.Hide(keys[:1], secret); err != nil { // with an old key
		r.t.Fatal(err)
	}
	return w
}

func hidden(name string) seal.Secret {
	w := Webhook{Name: name}
	if err := w.Hide(keys, secret); err != nil {
		panic(err)
	}
	return w.Secret
}

// site is a cluster: one state, its past, and whoever leads.
type site struct {
	t     *testing.T
	mu    sync.Mutex
	store *state.Store
	past  *memory
	index uint64
	deaf  bool // commands do not go through

	patience time.Duration
}

func newSite(t *testing.T) *site {
	t.Helper()
	return &site{t: t, store: state.NewStore(), past: &memory{}}
}

// memory is a history without a disk, because what waits for a disk stops virtual time.
type memory struct {
	mu    sync.Mutex
	rows  []history.Row
	whole uint64
	hole  uint64 // it has nothing of the entries after the first row, through this one
}

func (m *memory) add(through uint64, rows []history.Row) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rows, m.whole = append(m.rows, rows...), through
}

func (m *memory) After(after history.Place, limit int) (history.Part, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if after.Index < m.hole {
		return history.Part{Next: after, Lacks: m.hole}, nil
	}
	at, _ := slices.BinarySearchFunc(m.rows, after, func(r history.Row, after history.Place) int {
		if r.Compare(after) <= 0 {
			return -1
		}
		return 1
	})
	part := history.Part{Rows: m.rows[at:], Next: history.EndOf(m.whole)}
	if len(part.Rows) > limit {
		part.Rows, part.Next = part.Rows[:limit], part.Rows[limit-1].Place
	}
	if part.Next.Compare(after) < 0 {
		part.Next = after
	}
	return part, nil
}

func (m *memory) Whole() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.whole
}

func (s *site) propose(_ context.Context, command state.Command) (state.Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deaf {
		return state.Result{}, consensus.ErrNotLeader
	}
	data, err := command.Encode()
	if err != nil {
		return state.Result{}, err
	}
	s.index++
	result := s.store.FSM().Apply(&raft.Log{Index: s.index, Data: data}).(state.Result)
	s.past.add(s.index, history.Since(s.store.Snapshot(), s.index-1))
	return result, nil
}

// do puts a command into the log.
func (s *site) do(command state.Command) {
	s.t.Helper()
	command.Key, command.Caller, command.At = fmt.Sprintf("k%d", s.index), "operator/alice", time.Now().UTC()
	if command.Kind == "" {
		command.Kind = "test"
	}
	result, err := s.propose(s.t.Context(), command)
	if err != nil || result.Refusal != nil {
		s.t.Fatal(err, result.Refusal)
	}
}

func (s *site) add(w *Webhook) {
	s.t.Helper()
	var command state.Command
	x := s.store.Snapshot()
	if err := Put(x, &command, w, &Progress{After: history.EndOf(x.Index())}); err != nil {
		s.t.Fatal(err)
	}
	s.do(command)
}

// happens puts events into the log, one entry each: subject, message.
func (s *site) happens(subject string, messages ...string) {
	s.t.Helper()
	for _, text := range messages {
		s.do(state.Command{Events: []model.Event{{At: time.Now().UTC(), Kind: "vm.changed", Subject: subject, Message: text}}})
	}
}

func (s *site) sender() *Sender {
	n := 0
	return NewSender(Config{
		Cluster: "c1", Self: "coord1", State: s.store.Snapshot, Past: s.past, Keys: func() (seal.Keys, error) { return keys, nil },
		Propose: s.propose, NewID: func() string { n++; return fmt.Sprintf("id-%p-%d", &n, n) }, Log: hclog.NewNullLogger(),
		fresh: true, patience: s.patience,
	})
}

// leads has a new leader send, and gives what ends that.
func (s *site) leads() (sender *Sender, end func()) {
	sender = s.sender()
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		sender.Run(ctx)
	}()
	return sender, func() { cancel(); <-done }
}

func (s *site) progress() Progress {
	_, p, _ := Of(s.store.Snapshot(), "hook")
	return p
}

// wantOnceEach checks that all was taken, in the order of each thing; the first time counts, as for a receiver that drops doubles.
func wantOnceEach(t *testing.T, taken []message, subject string, messages ...string) {
	t.Helper()
	seen := make(map[string]bool)
	var got []string
	for _, m := range taken {
		if m.Subject == subject && !seen[m.ID] {
			seen[m.ID] = true
			var event struct{ Message string }
			if err := json.Unmarshal(m.Data, &event); err != nil {
				t.Fatal(err)
			}
			got = append(got, event.Message)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(messages) {
		t.Errorf("%s was told %v, want %v", subject, got, messages)
	}
}

func numbers(from, to int) (all []string) {
	for i := from; i < to; i++ {
		all = append(all, fmt.Sprint(i))
	}
	return all
}

func TestAReceiverThatIsDownForAnHourGetsAllInOrder(t *testing.T) {
	r := plainReceiver(t)
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.happens("vm/a", "before it was added")
		s.add(r.hook("vm.*"))
		sender, end := s.leads()
		defer end()
		s.happens("vm/a", numbers(0, 3)...)
		time.Sleep(5 * time.Second)
		taken, _ := r.got()
		wantOnceEach(t, taken, "vm/a", numbers(0, 3)...)
		r.say(func(message) int { return http.StatusServiceUnavailable })
		for i := range 300 {
			s.happens("vm/a", fmt.Sprint(3+i))
			s.happens("vm/b", fmt.Sprint(i))
		}
		_, before := r.got()
		time.Sleep(time.Hour)
		_, after := r.got()
		if tries := after - before; tries < 60 || tries > 140 {
			t.Errorf("%d tries in an hour in which nothing was taken: want one or two a minute", tries)
		}
		if h, leads := sender.Health("hook"); !leads || h.Since.IsZero() || h.Problem == "" || h.Waiting == 0 || h.Waiting > window {
			t.Errorf("health %+v, %t", h, leads)
		}
		r.say(nil)
		time.Sleep(2 * time.Minute)
		taken, _ = r.got()
		wantOnceEach(t, taken, "vm/a", numbers(0, 303)...)
		wantOnceEach(t, taken, "vm/b", numbers(0, 300)...)
		if p := s.progress(); len(p.Dead) != 0 || p.Lost != 0 {
			t.Errorf("%+v", p)
		}
		if h, _ := sender.Health("hook"); !h.Since.IsZero() || h.Waiting != 0 || h.Behind != 0 || h.Taken != 603 {
			t.Errorf("health %+v", h)
		}
	})
}

// The leadership goes again and again while things happen, and at the worst moment: nothing of what was taken is on record.
func TestTheNextLeaderGoesOnWithoutAGap(t *testing.T) {
	r := plainReceiver(t)
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.add(r.hook())
		n := 0
		happen := func(often int) {
			for range often {
				s.happens("vm/a", fmt.Sprint(n))
				s.happens("node/x", fmt.Sprint(n))
				n++
				time.Sleep(4 * time.Second)
			}
		}
		for range 6 {
			_, end := s.leads()
			r.say(func(m message) int { // one in seven is refused at first
				if m.Index%7 == 0 && r.tries%2 == 0 {
					return http.StatusBadGateway
				}
				return http.StatusOK
			})
			happen(10)
			r.say(func(message) int { return http.StatusBadGateway }) // while it is written how far it is, some is not taken
			happen(10)
			s.mu.Lock()
			s.deaf = n%2 == 0
			s.mu.Unlock()
			end()
			s.mu.Lock()
			s.deaf = false
			s.mu.Unlock()
		}
		r.say(nil)
		_, end := s.leads()
		time.Sleep(10 * time.Minute)
		end()
		taken, _ := r.got()
		wantOnceEach(t, taken, "vm/a", numbers(0, n)...)
		wantOnceEach(t, taken, "node/x", numbers(0, n)...)
		if p := s.progress(); len(p.Dead) != 0 || p.After.Index < s.index-1 {
			t.Errorf("entry %d of %d, %d dead", p.After.Index, s.index, len(p.Dead))
		}
	})
}

// What a receiver refuses for good holds up nothing else, ends on the list, and is sent when somebody asks for it.
func TestWhatIsRefusedForGoodIsGivenUpAndTriedAgainWhenAsked(t *testing.T) {
	r := newReceiver(t)
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.add(r.hook())
		_, end := s.leads()
		defer end()
		r.say(func(m message) int {
			if m.Subject == "vm/bad" {
				return http.StatusUnprocessableEntity
			}
			return http.StatusOK
		})
		s.happens("vm/bad", "0")
		s.happens("vm/good", "0")
		time.Sleep(10 * time.Second)
		taken, _ := r.got()
		wantOnceEach(t, taken, "vm/good", "0")
		for i := 1; i < 20; i++ {
			s.happens("vm/good", fmt.Sprint(i))
			time.Sleep(30 * time.Second)
		}
		p := s.progress()
		if len(p.Dead) != 1 || p.Dead[0].Subject != "vm/bad" || p.Dead[0].Tries < stubborn || p.Dead[0].Reason == "" || p.Dead[0].At.IsZero() {
			t.Fatalf("%+v", p.Dead)
		}
		taken, _ = r.got()
		wantOnceEach(t, taken, "vm/good", numbers(0, 20)...)
		again := func() {
			x := s.store.Snapshot()
			hook, p, _ := Of(x, "hook")
			p.Dead[0].Again = true
			var command state.Command
			if err := Put(x, &command, &hook, &p); err != nil {
				t.Fatal(err)
			}
			s.do(command)
		}
		again()
		time.Sleep(time.Minute)
		if p := s.progress(); len(p.Dead) != 1 || p.Dead[0].Again || p.Dead[0].Tries != retries {
			t.Fatalf("it is still refused: %+v", p.Dead)
		}
		r.say(nil)
		again()
		time.Sleep(time.Minute)
		if p := s.progress(); len(p.Dead) != 0 {
			t.Fatalf("it was taken: %+v", p.Dead)
		}
		taken, _ = r.got()
		wantOnceEach(t, taken, "vm/bad", "0")
	})
}

func TestADeadReceiverNeitherHoldsUpOthersNorGrowsWithoutBound(t *testing.T) {
	dead, alive := plainReceiver(t), plainReceiver(t)
	dead.say(func(message) int { return http.StatusFound }) // a redirection is no taking
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.add(dead.hook())
		other := alive.hook()
		other.Name, other.Secret = "other", hidden("other")
		s.add(other)
		s.patience = time.Hour
		sender, end := s.leads()
		defer end()
		for i := range 3 * window / 2 {
			s.happens(fmt.Sprintf("vm/%d", i%300), fmt.Sprint(i))
		}
		time.Sleep(time.Minute)
		if taken, _ := alive.got(); len(taken) != 3*window/2 {
			t.Errorf("the other receiver was told %d of %d", len(taken), 3*window/2)
		}
		if h, _ := sender.Health("hook"); h.Waiting > window || h.Behind == 0 {
			t.Errorf("health %+v", h)
		}
		time.Sleep(9 * time.Hour)
		p := s.progress()
		if len(p.Dead) > MaxDead || len(p.Dead) == 0 || p.Dropped == 0 {
			t.Errorf("%d dead, %d dropped", len(p.Dead), p.Dropped)
		}
		if taken, _ := dead.got(); len(taken) != 0 {
			t.Errorf("a redirection counts as taken: %v", taken)
		}
		var command state.Command
		Remove(s.store.Snapshot(), &command, "hook")
		s.do(command)
		time.Sleep(time.Minute)
		_, before := dead.got()
		time.Sleep(time.Hour)
		if _, after := dead.got(); after != before {
			t.Errorf("%d tries after the webhook was removed", after-before)
		}
		if names := Names(s.store.Snapshot()); fmt.Sprint(names) != "[other]" {
			t.Errorf("%v", names)
		}
	})
}

// A secret that an older key has sealed is sealed with the newest: who joins later has no other.
func TestASecretIsSealedAnew(t *testing.T) {
	r := newReceiver(t)
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.add(r.hook())
		_, end := s.leads()
		defer end()
		time.Sleep(2 * saveEvery)
		w, _, _ := Of(s.store.Snapshot(), "hook")
		if w.Secret.Key != keys[1].ID() {
			t.Errorf("it is sealed with %s, want %s", w.Secret.Key, keys[1].ID())
		}
		s.happens("vm/a", "0")
		time.Sleep(5 * time.Second)
		taken, _ := r.got()
		wantOnceEach(t, taken, "vm/a", "0")
	})
}

// Entries that no coordinator has are passed over after a while, and counted.
func TestAHoleIsWaitedForAndThenPassedOver(t *testing.T) {
	r := newReceiver(t)
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.add(r.hook())
		s.happens("vm/a", "nobody has this one")
		s.past.hole = s.index
		s.happens("vm/a", "late")
		_, end := s.leads()
		defer end()
		time.Sleep(holePatience - time.Minute)
		if taken, _ := r.got(); len(taken) != 0 {
			t.Fatalf("a hole was passed over at once: %v", taken)
		}
		time.Sleep(3 * time.Minute)
		taken, _ := r.got()
		wantOnceEach(t, taken, "vm/a", "late")
		if p := s.progress(); p.Lost == 0 {
			t.Errorf("%+v", p)
		}
	})
}
