package state

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"

	"berth/coordinator/roundtrip"
	"berth/coordinator/view"
	"berth/shared/units"
)

// A field of a kind that has no copy would have every entry decoded by the leader too, and nobody would notice.
func TestEveryFieldOfACommandIsCopied(t *testing.T) {
	if err := roundtrip.Check(reflect.TypeFor[Command]()); err != nil {
		t.Error(err)
	}
}

// sameAsDecoded tells whether Written knew what decoding gives, and compares if it did: to the last bit, but for memory.
func sameAsDecoded(t *testing.T, command *Command) bool {
	t.Helper()
	data, read, err := command.Written()
	if err != nil {
		t.Fatal(err)
	}
	if alone, err := command.Encode(); err != nil || string(alone) != string(data) {
		t.Fatalf("%s is also written as %s (%v)", data, alone, err)
	}
	want, err := DecodeCommand(data)
	if err != nil {
		t.Fatal(err)
	}
	if read == nil {
		return false
	}
	if !reflect.DeepEqual(read, want) {
		t.Fatalf("of %s (-decoded +copied):\n%s", data, cmp.Diff(want, read))
	}
	seen := make(map[uintptr]bool)
	addresses(reflect.ValueOf(command), func(at uintptr, _ string) { seen[at] = true }, "")
	addresses(reflect.ValueOf(read), func(at uintptr, path string) {
		if at != 0 && seen[at] {
			t.Errorf("the copy shares %s with the command", path)
		}
	}, "command")
	return true
}

// What the leader gives its state of each kind of command is what the others decode: of commands with every field set, and with fields
// that are of every kind of nothing, which text does not tell apart or leaves out.
func TestACommandIsWhatItsTextIsReadAs(t *testing.T) {
	local := time.Local
	defer func() { time.Local = local }()
	for _, zone := range []*time.Location{time.UTC, time.FixedZone("", 3600), time.FixedZone("LMT", 53*60+28)} {
		time.Local = zone
		for i, command := range goldenCommands() {
			command.Key, command.At = fmt.Sprint("golden ", i), noon.In(zone)
			sameAsDecoded(t, &command)
		}
		random := rand.New(rand.NewPCG(1, 2))
		same := 0
		const commands = 300
		for range commands {
			var command Command
			strange := random.IntN(4) == 0
			scatter(random, reflect.ValueOf(&command).Elem(), strange, 0)
			command.Level, command.Release = 0, ""
			if sameAsDecoded(t, &command) {
				same++
			}
		}
		if _, offset := noon.In(zone).Zone(); offset%60 == 0 && (same < commands/3 || same > commands*9/10) {
			t.Errorf("in zone %s %d of %d commands were not decoded: that tests too little", zone, same, commands)
		}
	}
}

// scatter fills a value with what it may have, and where it is to be strange, with what text may not hold.
func scatter(random *rand.Rand, v reflect.Value, strange bool, depth int) {
	switch v.Interface().(type) {
	case time.Time:
		at := time.Unix(random.Int64N(4e9), random.Int64N(1e9))
		v.Set(reflect.ValueOf([]time.Time{{}, at.UTC(), time.Now(), at}[random.IntN(4)]))
		if strange && random.IntN(10) == 0 {
			v.Set(reflect.ValueOf(at.In(time.FixedZone("", 1800))))
		}
		return
	case view.Column[float64]:
		v.Set(reflect.ValueOf(pieces(random, func() float64 { return figure(random) })))
		return
	case view.Column[int]:
		v.Set(reflect.ValueOf(pieces(random, func() int { return int(random.Int64()) })))
		return
	case view.Column[int64]:
		v.Set(reflect.ValueOf(pieces(random, random.Int64)))
		return
	case view.Column[units.Bytes]:
		v.Set(reflect.ValueOf(pieces(random, func() units.Bytes { return units.Bytes(random.Int64()) })))
		return
	}
	entries := random.IntN(3)
	if depth > 8 {
		entries = 0
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(random.IntN(2) == 0)
	case reflect.String:
		v.SetString([]string{"", "a text", "<&>\u2028\"\\\x00", "\ufffd", "ü"}[random.IntN(5)])
		if strange && random.IntN(20) == 0 {
			v.SetString("broken \xff")
		}
	case reflect.Float64:
		v.SetFloat(figure(random))
	case reflect.Pointer:
		if random.IntN(2) == 0 && depth <= 8 {
			v.Set(reflect.New(v.Type().Elem()))
			scatter(random, v.Elem(), strange, depth+1)
		}
	case reflect.Slice:
		if random.IntN(3) > 0 {
			v.Set(reflect.MakeSlice(v.Type(), entries, entries+1))
		}
		for i := range v.Len() {
			scatter(random, v.Index(i), strange, depth+1)
		}
	case reflect.Array:
		for i := range v.Len() {
			scatter(random, v.Index(i), strange, depth+1)
		}
	case reflect.Map:
		if random.IntN(3) > 0 {
			v.Set(reflect.MakeMap(v.Type()))
		}
		for range entries * min(1, v.Len()+random.IntN(2)) {
			if v.IsNil() {
				break
			}
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			scatter(random, key, strange, depth+1)
			scatter(random, value, strange, depth+1)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if random.IntN(3) > 0 {
				scatter(random, v.Field(i), strange, depth+1)
			}
		}
	default:
		if v.CanInt() {
			v.SetInt(random.Int64() >> random.IntN(64))
		} else {
			v.SetUint(random.Uint64() >> random.IntN(64))
		}
	}
}

func figure(random *rand.Rand) float64 {
	return []float64{0, math.Copysign(0, -1), 1, -2.5, 1e-7, 1e21, math.MaxFloat64 / 4, random.NormFloat64()}[random.IntN(8)]
}

// pieces is a column: not given, empty, or of one piece or more.
func pieces[T comparable](random *rand.Rand, one func() T) view.Column[T] {
	length := []int{-1, 0, 1, 3, 300}[random.IntN(5)]
	if length < 0 {
		return view.Column[T]{}
	}
	values := make([]T, length)
	for i := range values {
		values[i] = one()
	}
	return view.ColumnOf(values...)
}

// A state that was given the commands of an entry is the one that has decoded it, and answers the same; and it takes them for no other
// entry, however alike.
func TestWhatIsForeseenIsAppliedAsIfItWereRead(t *testing.T) {
	leader, follower := newMember(t), newMember(t)
	foreseen := 0
	for i, command := range goldenCommands() {
		if command.Key == "" {
			command.Key = label("golden", uint64(i), 0)
		}
		command.At = noon.Add(time.Duration(i) * time.Minute)
		if command.Check != nil {
			command.Check = &Check{Index: leader.index, Hash: leader.store.Hash()}
		}
		data, read, err := command.Written()
		if err != nil {
			t.Fatalf("command %d: %v", i, err)
		}
		if read != nil {
			foreseen++
		}
		entry := Entry([][]byte{data}, leader.store.Snapshot().FeatureLevel())
		forget := leader.store.Foresee(entry, []*Command{read})
		leader.index += 2
		follower.index += 2
		got := leader.fsm.Apply(&raft.Log{Index: leader.index, Type: raft.LogCommand, Data: entry})
		want := follower.fsm.Apply(&raft.Log{Index: follower.index, Type: raft.LogCommand, Data: append([]byte(nil), entry...)})
		forget()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("command %d (-decoded +given):\n%s", i, diff)
		}
		if leader.store.Hash() != follower.store.Hash() {
			t.Fatalf("command %d parts the states", i)
		}
	}
	if others := len(goldenCommands()) - foreseen; others != 1 { // one tells the time of another zone
		t.Errorf("%d commands were decoded", others)
	}
	if string(saved(t, leader.store.Snapshot())) != string(saved(t, follower.store.Snapshot())) {
		t.Error("the snapshots differ")
	}

	first, second := keyed("one", putVM(0, vm("foreseen-1", "one", 0))), keyed("two", putVM(0, vm("foreseen-2", "two", 0)))
	entry := Entry(encoded(t, first), FeatureLevel)
	forget := leader.store.Foresee(entry, []*Command{&second})
	copied := append([]byte(nil), entry...)
	leader.index++
	leader.fsm.Apply(&raft.Log{Index: leader.index, Type: raft.LogCommand, Data: copied})
	forget()
	leader.store.Foresee(entry, []*Command{nil})()
	if _, found := leader.store.Snapshot().VM("foreseen-1"); !found {
		t.Error("an entry with the same bytes elsewhere is taken for one that was foreseen")
	}
	leader.index++
	leader.fsm.Apply(&raft.Log{Index: leader.index, Type: raft.LogCommand, Data: entry})
	if _, found := leader.store.Snapshot().VM("foreseen-2"); found {
		t.Error("what was forgotten is applied")
	}
}
