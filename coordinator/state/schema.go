package state

import (
	"encoding/binary"
	"slices"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/coordinator/session"
	"berth/coordinator/state/naming"
)

// Tables that only the state itself writes.
const (
	tableEvents  = "event"
	tableKeys    = "key"
	tableEpochs  = "epoch"
	tableApplied = "applied"
)

// Indexes in addition to the primary one.
const (
	byID      = "id"
	byName    = "name"
	byRequest = "request" // operations and plans by the caller's idempotency key
	byHolder  = "holder"  // VMs by the node that may run them
	byLink    = "link"    // resources and VMs by the resources that they name
	byCluster = "cluster" // nodes by the name of their cluster
	byHost    = "host"    // nodes by libvirt's host UUID
	byMachine = "machine" // nodes by machine ID
	byAge     = "age"     // oldest first
	byMark    = "mark"    // VMs by what the leader's loops look for
	byDisk    = "disk"    // VMs by the disks that they name themselves
	byMember  = "member"  // resources by the VMs and nodes among their members
	byPlan    = "plan"    // operations by the plan that they carry out, oldest first
	byLiveVM  = "live"    // live operations by VM
	byStart   = "start"   // starts that are dispatched or queued, by node, the last to be changed last
	byLive    = "living"  // live plans, oldest first
	byEnded   = "ended"   // ended operations, first ended first; ended plans, oldest first; revoked identities, first revoked first
	byMoved   = "moved"   // migrations that tell what others will take, see keysOfMoved, first ended first
	byKey     = "key"     // identities by the hashes of their keys
)

// decisionRow is a decision with its place in the history.
type decisionRow struct {
	Index    uint64             `json:"index"`
	Sequence uint32             `json:"sequence"` // within one entry of the log
	Decision placement.Decision `json:"decision"`
}

// eventRow is an event with its place in the history.
type eventRow struct {
	Sequence uint32      `json:"sequence"` // within one entry of the log
	Event    model.Event `json:"event"`
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
	Index uint64 `json:"index"`
	Hash  []byte `json:"hash,omitempty"`
	clock

	// How many rows there are in the tables that are trimmed.
	Decisions int `json:"decisions"`
	Events    int `json:"events"`
	Ended     int `json:"ended"`
	Keys      int `json:"keys"`
	Epochs    int `json:"epochs"`
	Plans     int `json:"plans,omitempty"`   // ended ones
	Revoked   int `json:"revoked,omitempty"` // identities
}

// tableSchema is what a table is looked up by. The first index is the one by ID.
type tableSchema struct {
	name    string
	indexes []indexSchema
}

func (s *tableSchema) idOf(row any) string { return s.indexes[0].keys(row)[0] }

// indexSchema is one index: the keys that it has a row under, none if the row is not in it. Rows share the keys of an index
// that is not unique; there they are in the order of their IDs.
type indexSchema struct {
	name   string
	unique bool
	keys   func(row any) []string
}

// under are the keys in the tree of the index of a row with an ID.
func (s *indexSchema) under(id string, row any) []string {
	if row == nil {
		return nil
	}
	keys := s.keys(row)
	if !s.unique {
		for i := range keys {
			keys[i] += id
		}
	}
	return keys
}

// text ends with a NUL so that no text is the beginning of another. Identifiers hold no NUL, see checkIdentifier.
func text(s string) string { return s + "\x00" }

func number(n uint64) string { return string(binary.BigEndian.AppendUint64(nil, n)) }

// place orders rows by entry of the log and then by position in it.
func place(index uint64, sequence uint32) string {
	return string(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(nil, index), sequence))
}

// moment orders times, those before 1970 included.
func moment(t time.Time) string { return place(uint64(t.Unix())^1<<63, uint32(t.Nanosecond())) }

func unique[T any](name string, key func(row *T) string) indexSchema {
	return indexSchema{name: name, unique: true, keys: func(row any) []string { return []string{key(row.(*T))} }}
}

func shared[T any](name string, key func(row *T) (key string, in bool)) indexSchema {
	return indexSchema{name: name, keys: func(row any) []string {
		if key, in := key(row.(*T)); in {
			return []string{key}
		}
		return nil
	}}
}

// several is an index under any number of texts a row, those that are empty left out.
func several[T any](name string, texts func(row *T) []string) indexSchema {
	return indexSchema{name: name, keys: func(row any) []string {
		var keys []string
		for _, one := range texts(row.(*T)) {
			if one != "" && !slices.Contains(keys, text(one)) {
				keys = append(keys, text(one))
			}
		}
		return keys
	}}
}

// keysOfMoved has a migration among all, among those of its VM, and among those between its two nodes.
func keysOfMoved(row any) []string {
	op := row.(*operation.Operation)
	if op.Live() || !op.Measured() {
		return nil
	}
	ended := moment(op.EndedAt)
	return []string{text("") + ended, text("vm") + text(op.VM) + ended, text("way") + text(op.Source) + text(op.Target) + ended}
}

func table(name string, indexes ...indexSchema) tableSchema { return tableSchema{name, indexes} }

// Names are in shared indexes although they are unique: commands check that, and one command may swap two names.
func newSchema() []tableSchema {
	return []tableSchema{
		table(string(Nodes),
			unique(byID, func(n *model.Node) string { return text(n.ID) }),
			shared(byName, func(n *model.Node) (string, bool) { return text(n.Name), true }),
			shared(byHost, func(n *model.Node) (string, bool) { return text(n.HostUUID), n.HostUUID != "" }),
			shared(byMachine, func(n *model.Node) (string, bool) { return text(n.MachineID), n.MachineID != "" }),
			shared(byCluster, func(n *model.Node) (string, bool) { return text(n.Cluster), true })),
		table(string(VMs),
			unique(byID, func(v *model.VM) string { return text(v.ID) }),
			shared(byName, func(v *model.VM) (string, bool) { return text(v.Name), true }),
			shared(byHolder, func(v *model.VM) (string, bool) {
				return text(v.Holder) + text(v.Name), v.Holder != ""
			}),
			several(byLink, naming.LinksOfVM),
			several(byDisk, operation.DiskNames),
			several(byMark, naming.MarksOfVM)),
		table(string(Operations),
			unique(byID, func(o *operation.Operation) string { return text(o.ID) }),
			shared(byAge, func(o *operation.Operation) (string, bool) { return moment(o.CreatedAt), true }),
			shared(byRequest, func(o *operation.Operation) (string, bool) { return text(o.Request), o.Request != "" }),
			shared(byPlan, func(o *operation.Operation) (string, bool) {
				return text(o.Plan) + moment(o.CreatedAt), o.Plan != ""
			}),
			shared(byLiveVM, func(o *operation.Operation) (string, bool) { return text(o.VM), o.Live() }),
			shared(byStart, func(o *operation.Operation) (string, bool) {
				starts := o.Kind == operation.Start && (o.Phase == operation.Dispatched || o.Phase == operation.Queued)
				return text(o.Target) + number(o.Revision), starts
			}),
			shared(byEnded, func(o *operation.Operation) (string, bool) { return number(o.Revision), !o.Live() }),
			indexSchema{name: byMoved, keys: keysOfMoved}),
		table(string(Decisions),
			unique(byID, func(d *decisionRow) string { return text(d.Decision.ID) }),
			unique(byAge, func(d *decisionRow) string { return place(d.Index, d.Sequence) })),
		table(string(Members),
			unique(byID, func(m *model.Member) string { return text(m.ID) }),
			shared(byName, func(m *model.Member) (string, bool) { return text(m.Name), true })),
		table(string(Tokens),
			unique(byID, func(t *model.Token) string { return text(t.Hash) })),
		table(string(Resources),
			unique(byID, func(r *model.Resource) string { return text(r.ID) }),
			shared(byName, func(r *model.Resource) (string, bool) { return text(naming.OfResource(r.Kind, r.Name)), true }),
			several(byLink, naming.LinksOf),
			several(byMember, naming.MembersOf)),
		table(string(Meta),
			unique(byID, func(m *metaRow) string { return text(m.Key) })),
		table(string(Plans),
			unique(byID, func(p *model.Plan) string { return text(p.ID) }),
			shared(byAge, func(p *model.Plan) (string, bool) { return moment(p.CreatedAt), true }),
			shared(byRequest, func(p *model.Plan) (string, bool) { return text(p.Request), p.Request != "" }),
			shared(byLive, func(p *model.Plan) (string, bool) { return moment(p.CreatedAt), p.State.Live() }),
			shared(byEnded, func(p *model.Plan) (string, bool) { return moment(p.CreatedAt), !p.State.Live() })),
		table(string(Identities),
			unique(byID, func(i *model.Identity) string { return text(i.ID) }),
			shared(byName, func(i *model.Identity) (string, bool) { return text(naming.OfIdentity(i.Kind, i.Name)), true }),
			several(byKey, naming.KeysOf),
			shared(byEnded, func(i *model.Identity) (string, bool) { return moment(i.Revoked.At), !i.Live() })),
		table(string(Sessions),
			unique(byID, func(s *session.Session) string { return text(s.ID) })),
		table(tableEvents,
			unique(byID, func(e *eventRow) string { return place(e.Event.Index, e.Sequence) })),
		table(tableKeys,
			unique(byID, func(k *keyRow) string { return text(k.Key) }),
			unique(byAge, func(k *keyRow) string { return place(k.Index, k.Sequence) })),
		table(tableEpochs,
			unique(byID, func(e *epochRow) string { return text(e.VM) }),
			shared(byAge, func(e *epochRow) (string, bool) { return number(e.Index), true })),
		table(tableApplied,
			unique(byID, func(*appliedRow) string { return text("") })),
	}
}
