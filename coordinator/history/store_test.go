package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
)

var begun = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// draw makes a source of random numbers whose seed a failure names.
func draw(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// happened are rows of a log of so many entries, some of which make none and some of which make several.
func happened(random *rand.Rand, entries uint64, every time.Duration) []Row {
	var rows []Row
	for index := uint64(1); index <= entries; index++ {
		at := begun.Add(time.Duration(index) * every)
		for sequence := range uint32(random.IntN(4)) {
			row, name := Row{Place: Place{index, sequence}}, fmt.Sprintf("web%d", random.IntN(30))
			switch random.IntN(3) {
			case 0:
				row.Event = &model.Event{Index: index, At: at, Kind: "vm.started", Subject: "vm/" + name, Message: "runs", Caller: "operator/alice"}
			case 1:
				row.Decision = &placement.Decision{ID: fmt.Sprintf("d%d", index), At: at, Request: placement.Request{VMName: name}}
			default:
				row.Operation = &operation.Operation{ID: fmt.Sprintf("o%d", index), VMName: name, EndedAt: at, Revision: index}
			}
			rows = append(rows, row)
		}
	}
	return rows
}

func between(rows []Row, after, through uint64) []Row {
	var some []Row
	for i := range rows {
		if rows[i].Index > after && rows[i].Index <= through {
			some = append(some, rows[i])
		}
	}
	return some
}

// feed adds what the store does not have yet, in steps of random size, up to an entry of the log.
func feed(t *testing.T, random *rand.Rand, s *Store, rows []Row, through uint64) {
	t.Helper()
	for after := s.Whole(); after < through; {
		next := min(after+1+random.Uint64N(20), through)
		if err := s.Add(after, next, between(rows, after, next)); err != nil {
			t.Fatal(err)
		}
		after = next
	}
}

func opened(t *testing.T, dir string, limits Limits) (*Store, []string) {
	t.Helper()
	s, notes, err := Open(dir, limits)
	if err != nil {
		t.Fatal(err)
	}
	s.segment = 4 << 10
	return s, notes
}

func content(t *testing.T, s *Store, q Query) string {
	t.Helper()
	var lines []string
	for row, err := range s.Backwards(q) {
		if err != nil {
			t.Fatal(err)
		}
		line, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(line))
	}
	slices.Reverse(lines)
	return strings.Join(lines, "\n")
}

func said(t *testing.T, rows []Row) string {
	t.Helper()
	lines := make([]string, 0, len(rows))
	for i := range rows {
		line, err := json.Marshal(rows[i])
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(line))
	}
	return strings.Join(lines, "\n")
}

func same(t *testing.T, s *Store, rows []Row) {
	t.Helper()
	if got, want := content(t, s, Query{}), said(t, rows); got != want {
		t.Fatalf("the store has %d rows, want %d", strings.Count(got, "\n")+1, len(rows))
	}
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil || len(names) == 0 {
		t.Fatal("no segments", err)
	}
	return names
}

// Whatever byte a crash cuts the writing off at, a restart has what was whole, and the rest comes from the state: no gap, no double.
func TestNothingIsLostOrDoubleAfterATornWrite(t *testing.T) {
	random := draw(t)
	rows := happened(random, 400, time.Second)
	dir := t.TempDir()
	for reached := uint64(0); reached < 400; {
		s, notes := opened(t, dir, Limits{})
		if len(notes) > 0 {
			t.Fatal("a torn write is no damage: ", notes)
		}
		if s.Whole() > reached {
			t.Fatalf("whole through %d, and %d is as far as it came", s.Whole(), reached)
		}
		same(t, s, between(rows, 0, s.Whole()))
		reached = min(max(reached, s.Whole())+random.Uint64N(40), 400)
		feed(t, random, s, rows, reached)
		last := slices.Max(files(t, dir))
		if status, err := os.Stat(last); err != nil || reached == 400 {
			continue
		} else if err := os.Truncate(last, random.Int64N(status.Size()+1)); err != nil {
			t.Fatal(err)
		}
	}
	s, _ := opened(t, dir, Limits{})
	same(t, s, rows)
	if missing, _ := s.Missing(); len(missing) > 0 || s.Whole() != 400 {
		t.Errorf("missing %v, whole %d", missing, s.Whole())
	}
}

// refill asks another store for all that one lacks.
func refill(t *testing.T, s, from *Store) {
	t.Helper()
	for range 10000 {
		missing, leading := s.Missing()
		if len(missing) == 0 {
			return
		}
		want := missing[0]
		page, err := from.Page(want.After, want.Through)
		if err != nil {
			t.Fatal(err)
		}
		if page.Begins > 0 && leading && len(missing) == 1 {
			if page, err = from.Page(page.Begins, want.Through); err != nil {
				t.Fatal(err)
			}
		}
		if len(page.Block) == 0 {
			t.Fatalf("nobody has %v: %+v", want, page)
		}
		if _, err := s.Fill(page); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("it never ends")
}

// A byte that has changed in any file is found when the store is opened. The part is set aside, and another member fills the range.
func TestDamageIsFoundSetAsideAndFilledFromAnotherMember(t *testing.T) {
	random := draw(t)
	rows := happened(random, 600, time.Second)
	healthy, _ := opened(t, t.TempDir(), Limits{})
	feed(t, random, healthy, rows, 600)
	dir := t.TempDir()
	s, _ := opened(t, dir, Limits{})
	feed(t, random, s, rows, 600)
	for range 20 {
		names := files(t, dir)
		at := random.IntN(len(names))
		data, err := os.ReadFile(names[at])
		if err != nil {
			t.Fatal(err)
		}
		data[random.IntN(len(data))] ^= byte(1 + random.IntN(255))
		if err := os.WriteFile(names[at], data, 0o600); err != nil {
			t.Fatal(err)
		}
		s, notes := opened(t, dir, Limits{})
		if at < len(names)-1 && (len(notes) != 1 || !strings.Contains(notes[0], names[at]+damaged)) {
			t.Fatalf("damage of %s was not told: %q", names[at], notes)
		}
		feed(t, random, s, rows, 600)
		refill(t, s, healthy)
		same(t, s, rows)
	}
}

// A store that begins late, has holes and is asked in another order has in the end what all others have.
func TestAMemberThatWasAwayHasTheSameInTheEnd(t *testing.T) {
	random := draw(t)
	rows := happened(random, 500, time.Second)
	there, _ := opened(t, t.TempDir(), Limits{})
	feed(t, random, there, rows, 500)
	dir := t.TempDir()
	away, _ := opened(t, dir, Limits{})
	for index := uint64(0); index < 500; {
		index += 20 + random.Uint64N(60) // it was away for these
		next := index + random.Uint64N(40)
		if next > 500 {
			break
		}
		if err := away.Add(index, next, between(rows, index, next)); err != nil {
			t.Fatal(err)
		}
		index = next
	}
	away, _ = opened(t, dir, Limits{})
	refill(t, away, there)
	feed(t, random, away, rows, 500)
	same(t, away, rows)
	again, notes := opened(t, dir, Limits{})
	if len(notes) > 0 {
		t.Error(notes)
	}
	same(t, again, rows)
}

func TestWhatIsThereIsNotTakenInTwice(t *testing.T) {
	random := draw(t)
	rows := happened(random, 100, time.Second)
	s, _ := opened(t, t.TempDir(), Limits{})
	feed(t, random, s, rows, 100)
	for _, again := range []Range{{0, 10}, {40, 60}, {99, 120}, {0, 200}} {
		if err := s.Add(again.After, again.Through, between(rows, again.After, again.Through)); err == nil {
			t.Errorf("%v was taken in twice", again)
		}
	}
	same(t, s, rows)
}

// Nothing goes before its time, what is old goes in the end, and the size is kept. What was dropped does not count as missing.
func TestOnlyWhatIsOldOrTooMuchIsDropped(t *testing.T) {
	random := draw(t)
	const age = 100 * time.Hour
	rows := happened(random, 2000, 12*time.Minute) // 400 hours
	s, _ := opened(t, t.TempDir(), Limits{Age: age})
	feed(t, random, s, rows, 2000)
	now := rows[len(rows)-1].At()
	for _, clock := range []time.Time{now, now.Add(9 * age), now.Add(-age)} { // set far ahead, it drops nothing more
		for dropped, err := s.Prune(clock); dropped || err != nil; dropped, err = s.Prune(clock) {
			if err != nil {
				t.Fatal(err)
			}
		}
		kept := strings.Split(content(t, s, Query{}), "\n")
		var young int
		for i := range rows {
			if rows[i].At().After(now.Add(-age)) {
				young++
			}
		}
		if extra := len(kept) - young; extra < 0 || extra > young/8 {
			t.Fatalf("%d rows are kept, %d are young enough", len(kept), young)
		}
	}
	if missing, _ := s.Missing(); len(missing) > 0 {
		t.Errorf("what was dropped is missing: %v", missing)
	}
	s.limits = Limits{Size: 10 << 10}
	for dropped, err := s.Prune(now); dropped || err != nil; dropped, err = s.Prune(now) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if size := s.Figures().Size; size > 10<<10 || size < 1<<10 {
		t.Errorf("it has %d bytes", size)
	}
}

// A full disk stops the history and loses nothing of it.
func TestAFullDiskLosesNothing(t *testing.T) {
	random := draw(t)
	rows := happened(random, 300, time.Second)
	dir := t.TempDir()
	s, _ := opened(t, dir, Limits{})
	whole := s.writeAt
	full := errors.New("no space left on device")
	for reached := uint64(0); reached < 300; {
		next := min(reached+1+random.Uint64N(20), 300)
		room := random.IntN(3) > 0
		s.writeAt = func(file *os.File, data []byte, at int64) error {
			if room {
				return whole(file, data, at)
			}
			return errors.Join(whole(file, data[:random.IntN(len(data))], at), full)
		}
		err := s.Add(reached, next, between(rows, reached, next))
		if room != (err == nil) {
			t.Fatalf("room %t, and %v", room, err)
		}
		if room {
			reached = next
		} else if s.Whole() != reached || !errors.Is(err, full) {
			t.Fatalf("it says to be whole through %d, and came to %d: %v", s.Whole(), reached, err)
		}
		same(t, s, between(rows, 0, reached))
	}
	s, notes := opened(t, dir, Limits{})
	if len(notes) > 0 {
		t.Error(notes)
	}
	same(t, s, rows)
}

// The order is that of the log. A clock that is set back changes none of it, and what is asked for by time is found all the same.
func TestAClockThatIsSetBackChangesNoOrder(t *testing.T) {
	random := draw(t)
	rows := happened(random, 300, time.Minute)
	for i := range rows {
		if rows[i].Index > 150 && rows[i].Event != nil {
			rows[i].Event.At = rows[i].Event.At.Add(-150 * time.Minute)
		}
	}
	s, _ := opened(t, t.TempDir(), Limits{})
	feed(t, random, s, rows, 300)
	same(t, s, rows)
	since, until := begun.Add(20*time.Minute), begun.Add(90*time.Minute)
	found := 0
	for row, err := range s.Backwards(Query{Since: since, Until: until}) {
		if err != nil {
			t.Fatal(err)
		}
		if at := row.At(); !at.Before(since) && at.Before(until) {
			found++
		}
	}
	want := 0
	for i := range rows {
		if at := rows[i].At(); !at.Before(since) && at.Before(until) {
			want++
		}
	}
	if found != want {
		t.Errorf("found %d of %d", found, want)
	}
}

func TestAQueryFindsAllThatHasAWordAndGoesOnWhereItEnded(t *testing.T) {
	random := draw(t)
	rows := happened(random, 500, time.Second)
	s, _ := opened(t, t.TempDir(), Limits{})
	feed(t, random, s, rows, 500)
	about := func(r *Row) bool { return slices.Contains(r.words(), "web7") }
	var want, got []Row
	for i := range rows {
		if about(&rows[i]) {
			want = append(want, rows[i])
		}
	}
	q := Query{Words: []string{"web7"}}
	for more := true; more; {
		more = false
		taken := 0
		for row, err := range s.Backwards(q) {
			if err != nil {
				t.Fatal(err)
			}
			if !about(&row) {
				continue
			}
			if taken == 3 { // the next page
				more = true
				break
			}
			got, q.Before, taken = append(got, row), &row.Place, taken+1
		}
	}
	slices.Reverse(got)
	if said(t, got) != said(t, want) {
		t.Errorf("found %d rows about web7, want %d", len(got), len(want))
	}
}
