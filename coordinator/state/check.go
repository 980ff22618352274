package state

import (
	"fmt"
	"slices"
	"strings"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/session"
	"berth/coordinator/state/naming"
)

// maxIdentifier bounds IDs, names and keys, in bytes.
const maxIdentifier = 256

func invalid(table Table, id, format string, args ...any) *Refusal {
	return &Refusal{Code: Invalid, Table: table, ID: id, Message: fmt.Sprintf(format, args...)}
}

// guarded tells whether records of the table are put and deleted only under an expectation.
func (t Table) guarded() bool {
	switch t {
	case Nodes, VMs, Operations, Members, Tokens, Resources, Plans, Identities, Sessions:
		return true
	default:
		return false
	}
}

// known tells whether commands may name the table.
func (t Table) known() bool { return t.guarded() || t == Decisions || t == Meta }

// puts are the records that the command stores.
func (c *Command) puts() []Record {
	var puts []Record
	for i := range c.Nodes {
		puts = append(puts, Record{Nodes, c.Nodes[i].ID})
	}
	for i := range c.VMs {
		puts = append(puts, Record{VMs, c.VMs[i].ID})
	}
	for i := range c.Operations {
		puts = append(puts, Record{Operations, c.Operations[i].ID})
	}
	for i := range c.Decisions {
		puts = append(puts, Record{Decisions, c.Decisions[i].ID})
	}
	for i := range c.Members {
		puts = append(puts, Record{Members, c.Members[i].ID})
	}
	for i := range c.Tokens {
		puts = append(puts, Record{Tokens, c.Tokens[i].Hash})
	}
	for i := range c.Resources {
		puts = append(puts, Record{Resources, c.Resources[i].ID})
	}
	for key := range c.Meta {
		puts = append(puts, Record{Meta, key})
	}
	for i := range c.Plans {
		puts = append(puts, Record{Plans, c.Plans[i].ID})
	}
	for i := range c.Identities {
		puts = append(puts, Record{Identities, c.Identities[i].ID})
	}
	for i := range c.Sessions {
		puts = append(puts, Record{Sessions, c.Sessions[i].ID})
	}
	return puts
}

// identifiers are the texts of the command that indexes are made of, with what they are. Those that may be empty are
// left out when they are.
func (c *Command) identifiers() [][2]string {
	found := [][2]string{{"key", c.Key}}
	optional := func(what, value string) {
		if value != "" {
			found = append(found, [2]string{what, value})
		}
	}
	for i := range c.Nodes {
		found = append(found, [2]string{"node name", c.Nodes[i].Name})
		optional("cluster", c.Nodes[i].Cluster)
	}
	for i := range c.VMs {
		found = append(found, [2]string{"VM name", c.VMs[i].Name})
		optional("holder", c.VMs[i].Holder)
		for _, link := range naming.LinksOfVM(&c.VMs[i]) {
			optional("link", link)
		}
	}
	for i := range c.Operations {
		found = append(found, [2]string{"operation's VM", c.Operations[i].VM})
		optional("request", c.Operations[i].Request)
		optional("operation's plan", c.Operations[i].Plan)
	}
	for i := range c.Members {
		found = append(found, [2]string{"member name", c.Members[i].Name})
	}
	for i := range c.Resources {
		found = append(found, [2]string{"resource kind", string(c.Resources[i].Kind)}, [2]string{"resource name", c.Resources[i].Name})
		for _, link := range naming.LinksOf(&c.Resources[i]) {
			found = append(found, [2]string{"link", link})
		}
		for _, member := range naming.MembersOf(&c.Resources[i]) {
			found = append(found, [2]string{"member", member})
		}
	}
	for i := range c.Plans {
		optional("request", c.Plans[i].Request)
	}
	for i := range c.Identities {
		found = append(found, [2]string{"identity kind", string(c.Identities[i].Kind)}, [2]string{"identity name", c.Identities[i].Name})
		for _, hash := range naming.KeysOf(&c.Identities[i]) {
			found = append(found, [2]string{"key hash", hash})
		}
	}
	return found
}

// checkIdentifier refuses what the indexes cannot hold. It is not what users may call things: that is decided before.
func checkIdentifier(what, value string) *Refusal {
	switch {
	case value == "":
		return invalid("", "", "the command has an empty %s", what)
	case len(value) > maxIdentifier:
		return invalid("", "", "the %s %.32q... has %d bytes, at most %d are kept", what, value, len(value), maxIdentifier)
	case strings.ContainsRune(value, 0):
		return invalid("", "", "the %s %q has a zero byte", what, value)
	}
	return nil
}

// checkShape refuses what no state could take.
func checkShape(command *Command) *Refusal {
	for _, identifier := range command.identifiers() {
		if refusal := checkIdentifier(identifier[0], identifier[1]); refusal != nil {
			return refusal
		}
	}
	touched := make(map[Record]bool)
	for _, record := range append(command.puts(), command.Delete...) {
		if refusal := checkIdentifier(string(record.Table)+" ID", record.ID); refusal != nil {
			return refusal
		}
		if touched[record] {
			return invalid(record.Table, record.ID, "the command changes %s %q twice", record.Table, record.ID)
		}
		touched[record] = true
	}
	for _, record := range command.Delete {
		if !record.Table.known() || slices.Contains([]Table{Operations, Decisions, Plans, Identities}, record.Table) {
			return invalid(record.Table, record.ID, "a record of %q cannot be deleted", record.Table)
		}
	}
	return nil
}

// checkExpectations compares revisions, and refuses to change a record that nobody compared.
func (w *write) checkExpectations(command *Command) *Refusal {
	expected := make(map[Record]bool)
	for _, e := range command.Expect {
		if !e.Table.known() {
			return invalid(e.Table, e.ID, "there is no table %q", e.Table)
		}
		if refusal := checkIdentifier("expected "+string(e.Table), e.ID); refusal != nil {
			return refusal
		}
		if revision := w.revision(e.Table, e.ID); revision != e.Revision {
			return &Refusal{Code: Stale, Table: e.Table, ID: e.ID, Message: stale(e, revision)}
		}
		expected[Record{e.Table, e.ID}] = true
	}
	for _, record := range append(command.puts(), command.Delete...) {
		if record.Table.guarded() && !expected[record] {
			return invalid(record.Table, record.ID, "the command changes %s %q without expecting a revision of it",
				record.Table, record.ID)
		}
	}
	for _, record := range command.Delete {
		if w.row(string(record.Table), record.ID) == nil {
			return invalid(record.Table, record.ID, "%s %q does not exist and cannot be deleted", record.Table, record.ID)
		}
	}
	return nil
}

func stale(e Expectation, revision uint64) string {
	switch {
	case revision == 0:
		return fmt.Sprintf("%s %q does not exist (any more)", e.Table, e.ID)
	case e.Revision == 0:
		return fmt.Sprintf("%s %q exists already", e.Table, e.ID)
	default:
		return fmt.Sprintf("%s %q has changed (revision %d, expected %d)", e.Table, e.ID, revision, e.Revision)
	}
}

// revision of a record; 0 when there is none.
func (w *write) revision(table Table, id string) uint64 {
	switch row := w.row(string(table), id).(type) {
	case *model.Node:
		return row.Revision
	case *model.VM:
		return row.Revision
	case *operation.Operation:
		return row.Revision
	case *model.Member:
		return row.Revision
	case *model.Token:
		return row.Revision
	case *model.Resource:
		return row.Revision
	case *metaRow:
		return row.Revision
	case *model.Plan:
		return row.Revision
	case *model.Identity:
		return row.Revision
	case *session.Session:
		return row.Revision
	case *decisionRow:
		return row.Index
	default:
		return 0
	}
}

// checkChanges compares the command with the records that it replaces.
func (w *write) checkChanges(command *Command) *Refusal {
	for i := range command.VMs {
		vm := &command.VMs[i]
		if before, exists := get[model.VM](w.tables, string(VMs), vm.ID); exists && vm.Epoch < before.Epoch {
			return invalid(VMs, vm.ID, "the epoch of VM %q cannot go from %d to %d", vm.Name, before.Epoch, vm.Epoch)
		}
		if last := w.lastEpoch(vm.ID); vm.EpochsGiven() < last {
			return invalid(VMs, vm.ID, "the epochs given to VM %q cannot go from %d to %d", vm.Name, last, vm.EpochsGiven())
		}
	}
	for i := range command.Operations {
		op := &command.Operations[i]
		before, exists := get[operation.Operation](w.tables, string(Operations), op.ID)
		if exists && !before.Live() {
			return invalid(Operations, op.ID, "operation %q has ended and cannot change", op.ID)
		}
	}
	for i := range command.Resources {
		resource := &command.Resources[i]
		if before, exists := get[model.Resource](w.tables, string(Resources), resource.ID); exists && before.Kind != resource.Kind {
			return invalid(Resources, resource.ID, "%s %q cannot become a %s", before.Kind, before.Name, resource.Kind)
		}
	}
	for i := range command.Plans {
		plan := &command.Plans[i]
		if before, exists := get[model.Plan](w.tables, string(Plans), plan.ID); exists && !before.State.Live() && plan.State.Live() {
			return invalid(Plans, plan.ID, "plan %q has ended (%s) and cannot be %s again", plan.ID, before.State, plan.State)
		}
	}
	for i := range command.Identities {
		identity := &command.Identities[i]
		before, exists := get[model.Identity](w.tables, string(Identities), identity.ID)
		switch {
		case exists && !before.Live() && identity.Live():
			return invalid(Identities, identity.ID, "%s %q was revoked, which is never taken back", before.Kind, before.Name)
		case exists && (before.Kind != identity.Kind || before.Role != identity.Role):
			return invalid(Identities, identity.ID, "%s %q cannot become a %s", before.Kind, before.Name, identity.Kind)
		}
	}
	for i := range command.Decisions {
		if id := command.Decisions[i].ID; w.row(string(Decisions), id) != nil {
			return invalid(Decisions, id, "decision %q exists already and cannot change", id)
		}
	}
	return nil
}

// checkOutcome looks at what the command made of the state.
func (w *write) checkOutcome(command *Command) *Refusal {
	for _, record := range append(command.puts(), command.Delete...) {
		var refusal *Refusal
		switch record.Table {
		case Nodes:
			refusal = oneName(w, Nodes, record.ID, func(n *model.Node) (string, string) { return n.ID, n.Name })
			if refusal == nil {
				refusal = w.checkNodeGone(record.ID)
			}
			if refusal == nil {
				refusal = w.checkClusterOf(record.ID)
			}
		case VMs:
			refusal = oneName(w, VMs, record.ID, func(v *model.VM) (string, string) { return v.ID, v.Name })
			if refusal == nil {
				refusal = w.checkOperationOf(record.ID)
			}
			if refusal == nil {
				refusal = w.checkLinksOfVM(record.ID)
			}
		case Members:
			refusal = oneName(w, Members, record.ID, func(m *model.Member) (string, string) { return m.ID, m.Name })
		case Resources:
			refusal = oneName(w, Resources, record.ID, func(r *model.Resource) (string, string) { return r.ID, naming.OfResource(r.Kind, r.Name) })
			if refusal == nil {
				refusal = w.checkResource(record.ID)
			}
		case Identities:
			refusal = w.checkIdentity(record.ID)
		case Operations:
			if op, _ := get[operation.Operation](w.tables, string(Operations), record.ID); op.Live() {
				refusal = w.checkOperationOf(op.VM)
			}
		}
		if refusal != nil {
			return refusal
		}
	}
	return nil
}

// checkNodeGone refuses to delete a node that a VM is held by, a live operation works on or the only volume of something is
// on. None of these changes the node's record, so an expectation of that would not see it.
func (w *write) checkNodeGone(id string) *Refusal {
	if w.row(string(Nodes), id) != nil {
		return nil
	}
	needed := func(what string, args ...any) *Refusal {
		return &Refusal{Code: Stale, Table: Nodes, ID: id, Message: fmt.Sprintf("node %q "+what, append([]any{id}, args...)...)}
	}
	for vm := range each[model.VM](w.tables, string(VMs), byHolder, text(id)) {
		return needed("holds VM %q", vm.Name)
	}
	for op := range each[operation.Operation](w.tables, string(Operations), byLiveVM, "") {
		if op.Source == id || op.Target == id {
			return needed("is needed by operation %q", op.ID)
		}
	}
	for resource := range each[model.Resource](w.tables, string(Resources), byID, "") {
		if slices.Contains(naming.VolumeNodes(resource), id) {
			return needed("has the volume of %s", called(string(resource.Kind), resource.Name))
		}
	}
	return nil
}

// checkIdentity refuses a key that two identities have, and a name that two live operators have.
func (w *write) checkIdentity(id string) *Refusal {
	identity, exists := get[model.Identity](w.tables, string(Identities), id)
	if !exists {
		return nil
	}
	for _, hash := range naming.KeysOf(identity) {
		for other := range each[model.Identity](w.tables, string(Identities), byKey, text(hash)) {
			if other.ID != id {
				return &Refusal{
					Code: InUse, Table: Identities, ID: other.ID,
					Message: fmt.Sprintf("%s %q has the same key (ID %s)", other.Kind, other.Name, other.ID),
				}
			}
		}
	}
	if identity.Kind != model.IdentityOperator || !identity.Live() {
		return nil
	}
	for other := range each[model.Identity](w.tables, string(Identities), byName, text(naming.OfIdentity(identity.Kind, identity.Name))) {
		if other.ID != id && other.Live() {
			return &Refusal{
				Code: NameTaken, Table: Identities, ID: other.ID,
				Message: fmt.Sprintf("another operator is named %q (ID %s)", identity.Name, other.ID),
			}
		}
	}
	return nil
}

// oneName refuses a name that two records have.
func oneName[Row any](w *write, table Table, id string, identify func(*Row) (id, name string)) *Refusal {
	row, exists := get[Row](w.tables, string(table), id)
	if !exists {
		return nil
	}
	_, name := identify(row)
	for other := range each[Row](w.tables, string(table), byName, text(name)) {
		if otherID, _ := identify(other); otherID != id {
			return &Refusal{
				Code: NameTaken, Table: table, ID: otherID,
				Message: fmt.Sprintf("another %s is named %q (ID %s)", table, name, otherID),
			}
		}
	}
	return nil
}

// checkOperationOf refuses a second live operation on a VM, and one on no VM.
func (w *write) checkOperationOf(vm string) *Refusal {
	var live []string
	for op := range each[operation.Operation](w.tables, string(Operations), byLiveVM, text(vm)) {
		live = append(live, op.ID)
	}
	switch {
	case len(live) == 0:
		return nil
	case len(live) > 1:
		return invalid(VMs, vm, "operations %q would work on VM %q at a time", live, vm)
	case w.row(string(VMs), vm) == nil:
		return invalid(VMs, vm, "operation %q would work on VM %q, which does not exist", live[0], vm)
	default:
		return nil
	}
}
