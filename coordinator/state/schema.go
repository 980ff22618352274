package state

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/hashicorp/go-memdb"

	"berth/coordinator/cluster"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
)

// Tables that only the state itself writes.
const (
	tableEvents  = "event"
	tableKeys    = "key"
	tableEpochs  = "epoch"
	tableApplied = "applied"
)

// Indexes beside the primary one.
const (
	byID      = "id"
	byName    = "name"
	byRequest = "request" // operations and plans by the caller's idempotency key
	byHolder  = "holder"  // VMs by the node that may run them
	byLink    = "link"    // resources and VMs by the resources that they name
	byCluster = "cluster" // nodes by the name of their cluster
	byAge     = "age"     // oldest first
	byMember  = "member"  // resources by the VMs and nodes among their members
	byPlan    = "plan"    // operations by the plan that they carry out, oldest first
	byLiveVM  = "live"    // live operations by VM
	byStart   = "start"   // starts that are dispatched or queued, by node, the last to be changed last
	byLive    = "living"  // live plans, oldest first
	byEnded   = "ended"   // ended operations, first ended first; ended plans, oldest first
)

// decisionRow is a decision with its place in the history.
type decisionRow struct {
	Index    uint64             `json:"index"`
	Sequence uint32             `json:"sequence"` // within one entry of the log
	Decision placement.Decision `json:"decision"`
}

// eventRow is an event with its place in the history.
type eventRow struct {
	Sequence uint32        `json:"sequence"` // within one entry of the log
	Event    cluster.Event `json:"event"`
}

// metaRow is one value of Meta.
type metaRow struct {
	Key      string `json:"key"`
	Value    string `json:"value"`
	Revision uint64 `json:"revision"`
}

// keyRow remembers that a command was stored, for the next one with the same key.
type keyRow struct {
	Key   string    `json:"key"`
	Kind  string    `json:"kind"`
	At    time.Time `json:"at"` // stamped by the command
	Index uint64    `json:"index"`

	Sequence uint32 `json:"sequence,omitempty"` // of the command within one entry of the log
}

// epochRow outlives its deleted VM, so that a VM made later with the same ID cannot go back to an epoch that agents
// have already seen.
type epochRow struct {
	VM    string `json:"vm"`
	Epoch uint64 `json:"epoch"`
	Index uint64 `json:"index"` // of the deletion
}

// appliedRow is the only row of its table: it moves in the same transaction as the records, so that the index and the
// state can never part.
type appliedRow struct {
	Index uint64    `json:"index"`
	Hash  []byte    `json:"hash,omitempty"`
	Clock time.Time `json:"clock"` // latest time stamped on any command

	// How many rows there are in the tables that are trimmed.
	Decisions int `json:"decisions"`
	Events    int `json:"events"`
	Ended     int `json:"ended"`
	Keys      int `json:"keys"`
	Epochs    int `json:"epochs"`
	Plans     int `json:"plans,omitempty"` // ended ones
}

// keyOf is a memdb index over rows of type T. Its key function tells whether the row is in the index.
type keyOf[T any] func(row *T) (key []byte, in bool)

// FromObject implements memdb.SingleIndexer.
func (k keyOf[T]) FromObject(object any) (bool, []byte, error) {
	row, ok := object.(*T)
	if !ok {
		return false, nil, fmt.Errorf("index got a %T", object)
	}
	key, in := k(row)
	return in, key, nil
}

// FromArgs implements memdb.Indexer: the arguments are what text, number and moment take.
func (k keyOf[T]) FromArgs(args ...any) ([]byte, error) {
	var key []byte
	for _, arg := range args {
		switch value := arg.(type) {
		case string:
			key = append(key, text(value)...)
		case uint64:
			key = append(key, number(value)...)
		default:
			return nil, fmt.Errorf("index cannot look up a %T", arg)
		}
	}
	return key, nil
}

// PrefixFromArgs implements memdb.PrefixIndexer: the argument is the beginning of a text.
func (k keyOf[T]) PrefixFromArgs(args ...any) ([]byte, error) {
	if len(args) == 1 {
		if prefix, ok := args[0].(string); ok {
			return []byte(prefix), nil
		}
	}
	return nil, fmt.Errorf("index prefix has to be one text")
}

// keysOf is a memdb index under any number of texts a row, those that are empty left out. It is looked up like keyOf.
type keysOf[T any] struct {
	keyOf[T]
	texts func(row *T) []string
}

// FromObject implements memdb.MultiIndexer.
func (k keysOf[T]) FromObject(object any) (bool, [][]byte, error) {
	row, ok := object.(*T)
	if !ok {
		return false, nil, fmt.Errorf("index got a %T", object)
	}
	var keys [][]byte
	for _, one := range k.texts(row) {
		if one != "" {
			keys = append(keys, text(one))
		}
	}
	return len(keys) > 0, keys, nil
}

// text ends with a NUL so that no text is the beginning of another. Identifiers hold no NUL, see checkIdentifier.
func text(s string) []byte { return append([]byte(s), 0) }

func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// place orders rows by entry of the log and then by position in it.
func place(index uint64, sequence uint32) []byte {
	return binary.BigEndian.AppendUint32(number(index), sequence)
}

// moment orders times, those before 1970 included.
func moment(t time.Time) []byte { return place(uint64(t.Unix())^1<<63, uint32(t.Nanosecond())) }

func unique[T any](name string, key keyOf[T]) *memdb.IndexSchema {
	return &memdb.IndexSchema{Name: name, Unique: true, AllowMissing: name != byID, Indexer: key}
}

func shared[T any](name string, key keyOf[T]) *memdb.IndexSchema {
	return &memdb.IndexSchema{Name: name, AllowMissing: true, Indexer: key}
}

func several[T any](name string, texts func(row *T) []string) *memdb.IndexSchema {
	return &memdb.IndexSchema{Name: name, AllowMissing: true, Indexer: keysOf[T]{texts: texts}}
}

func table(name string, indexes ...*memdb.IndexSchema) *memdb.TableSchema {
	schema := &memdb.TableSchema{Name: name, Indexes: make(map[string]*memdb.IndexSchema, len(indexes))}
	for _, index := range indexes {
		schema.Indexes[index.Name] = index
	}
	return schema
}

// resourceName is unique among resources. Kinds hold no slash.
func resourceName(kind cluster.Kind, name string) string { return string(kind) + "/" + name }

// Names are in shared indexes although they are unique: commands check that, while memdb would overwrite silently, and
// one command may swap two names.
func newSchema() *memdb.DBSchema {
	tables := []*memdb.TableSchema{
		table(string(Nodes),
			unique(byID, func(n *cluster.Node) ([]byte, bool) { return text(n.ID), true }),
			shared(byName, func(n *cluster.Node) ([]byte, bool) { return text(n.Name), true }),
			shared(byCluster, func(n *cluster.Node) ([]byte, bool) { return text(n.Cluster), true })),
		table(string(VMs),
			unique(byID, func(v *cluster.VM) ([]byte, bool) { return text(v.ID), true }),
			shared(byName, func(v *cluster.VM) ([]byte, bool) { return text(v.Name), true }),
			shared(byHolder, func(v *cluster.VM) ([]byte, bool) {
				return append(text(v.Holder), text(v.Name)...), v.Holder != ""
			}),
			several(byLink, linksOfVM)),
		table(string(Operations),
			unique(byID, func(o *operation.Operation) ([]byte, bool) { return text(o.ID), true }),
			shared(byAge, func(o *operation.Operation) ([]byte, bool) { return moment(o.CreatedAt), true }),
			shared(byRequest, func(o *operation.Operation) ([]byte, bool) { return text(o.Request), o.Request != "" }),
			shared(byPlan, func(o *operation.Operation) ([]byte, bool) {
				return append(text(o.Plan), moment(o.CreatedAt)...), o.Plan != ""
			}),
			shared(byLiveVM, func(o *operation.Operation) ([]byte, bool) { return text(o.VM), o.Live() }),
			shared(byStart, func(o *operation.Operation) ([]byte, bool) {
				starts := o.Kind == operation.Start && (o.Phase == operation.Dispatched || o.Phase == operation.Queued)
				return append(text(o.Target), number(o.Revision)...), starts
			}),
			shared(byEnded, func(o *operation.Operation) ([]byte, bool) { return number(o.Revision), !o.Live() })),
		table(string(Decisions),
			unique(byID, func(d *decisionRow) ([]byte, bool) { return text(d.Decision.ID), true }),
			unique(byAge, func(d *decisionRow) ([]byte, bool) { return place(d.Index, d.Sequence), true })),
		table(string(Members),
			unique(byID, func(m *cluster.Member) ([]byte, bool) { return text(m.ID), true }),
			shared(byName, func(m *cluster.Member) ([]byte, bool) { return text(m.Name), true })),
		table(string(Tokens),
			unique(byID, func(t *cluster.Token) ([]byte, bool) { return text(t.Hash), true })),
		table(string(Resources),
			unique(byID, func(r *cluster.Resource) ([]byte, bool) { return text(r.ID), true }),
			shared(byName, func(r *cluster.Resource) ([]byte, bool) { return text(resourceName(r.Kind, r.Name)), true }),
			several(byLink, linksOfResource),
			several(byMember, membersOf)),
		table(string(Meta),
			unique(byID, func(m *metaRow) ([]byte, bool) { return text(m.Key), true })),
		table(string(Plans),
			unique(byID, func(p *cluster.Plan) ([]byte, bool) { return text(p.ID), true }),
			shared(byAge, func(p *cluster.Plan) ([]byte, bool) { return moment(p.CreatedAt), true }),
			shared(byRequest, func(p *cluster.Plan) ([]byte, bool) { return text(p.Request), p.Request != "" }),
			shared(byLive, func(p *cluster.Plan) ([]byte, bool) { return moment(p.CreatedAt), p.State.Live() }),
			shared(byEnded, func(p *cluster.Plan) ([]byte, bool) { return moment(p.CreatedAt), !p.State.Live() })),
		table(tableEvents,
			unique(byID, func(e *eventRow) ([]byte, bool) { return place(e.Event.Index, e.Sequence), true })),
		table(tableKeys,
			unique(byID, func(k *keyRow) ([]byte, bool) { return text(k.Key), true }),
			unique(byAge, func(k *keyRow) ([]byte, bool) { return place(k.Index, k.Sequence), true })),
		table(tableEpochs,
			unique(byID, func(e *epochRow) ([]byte, bool) { return text(e.VM), true }),
			shared(byAge, func(e *epochRow) ([]byte, bool) { return number(e.Index), true })),
		table(tableApplied,
			unique(byID, func(*appliedRow) ([]byte, bool) { return []byte{0}, true })),
	}
	schema := &memdb.DBSchema{Tables: make(map[string]*memdb.TableSchema, len(tables))}
	for _, t := range tables {
		schema.Tables[t.Name] = t
	}
	return schema
}
