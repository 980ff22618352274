package console

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// guestList is what the list of VMs shows.
type guestList struct {
	VMs                   []*berthv1.VM
	Node, Customer, Group string
	State, Label          string
	States                []string
	Next                  string // address of the next page; empty: this is the last
	Filtered              bool
}

// listGuests lists VMs, those with a condition first.
func listGuests(v *visit) (*page, error) {
	shown := guestList{
		Node: v.asked("node"), Customer: v.asked("customer"), Group: v.asked("group"), State: v.asked("state"), Label: v.asked("label"),
		States: []string{"running", "stopped", "starting", "stopping", "migrating", "paused", "unknown", "lost"},
	}
	if name := v.asked("vm"); name != "" {
		return showGuestNamed(v, name)
	}
	filter := &berthv1.Filter{}
	command := "berth vm list"
	for _, one := range []struct {
		flag, value string
		into        *[]string
	}{
		{"node", shown.Node, &filter.Nodes},
		{"customer", shown.Customer, &filter.Customers},
		{"group", shown.Group, &filter.Groups},
		{"state", shown.State, &filter.States},
		{"label", shown.Label, &filter.Labels},
	} {
		if one.value != "" {
			*one.into = []string{one.value}
			command += " --" + one.flag + " " + quoted(one.value)
			shown.Filtered = true
		}
	}
	answer, err := listVMs(v, &berthv1.ListVMsRequest{PageToken: v.asked("page"), Filter: filter})
	if err != nil {
		return nil, err
	}
	shown.VMs = answer.GetVms()
	slices.SortStableFunc(shown.VMs, func(a, b *berthv1.VM) int { return lacking(a.GetCondition() != "") - lacking(b.GetCondition() != "") })
	if token := answer.GetNextPageToken(); token != "" {
		next := v.request.URL.Query()
		next.Set("page", token)
		shown.Next = "/vms?" + next.Encode()
	}
	made := &page{name: "guests", Title: "VMs", Here: "vms", Command: command, Body: shown}
	return made.date(answer.GetLastKnown()), nil
}

// showGuestNamed is what the search leads to.
func showGuestNamed(v *visit, name string) (*page, error) {
	v.request.SetPathValue("vm", name)
	return showGuest(v)
}

// guestPage is what the page of one VM shows. What could not be read says why, and the rest is shown.
type guestPage struct {
	VM        *berthv1.VM
	Operation *berthv1.Operation
	Refused   string
	Gaps      []string
	Why       *berthv1.WhyVMResponse
	WhyNot    string
	Matrix    *matrix
	Stays     []*berthv1.VMStay
	Trimmed   bool
	StaysNot  string
	Events    []*berthv1.Event
	EventsNot string
	Keys      []*berthv1.CompiledKey // in force; system keys first
	KeysNot   string
	Use       string // what it has of its node now; empty: nothing tells
	Waits     string // what its threads wait for; empty: nothing tells
	Console   string // command that opens its serial console
	Runs      bool
	Stopped   bool
}

// showGuest shows one VM: where it is, why there, what is wrong, and what happened.
func showGuest(v *visit) (*page, error) {
	name := v.path("vm")
	answer, err := v.API.GetVM(v.ctx, connect.NewRequest(&berthv1.GetVMRequest{Vm: name}))
	if err != nil && leaderless(err) {
		return lastGuestPage(v, name)
	}
	if err != nil {
		return nil, err
	}
	vm := answer.Msg.GetVm()
	shown := guestPage{
		Use: useOf(vm.GetTelemetry()), Waits: guestWaits(vm.GetTelemetry()),
		VM: vm, Operation: answer.Msg.GetOperation(), Refused: answer.Msg.GetNextStartRefused(), Gaps: answer.Msg.GetHaGaps(),
		Console: "berth vm console " + quoted(vm.GetName()),
		Stopped: vm.GetState() == berthv1.VMState_VM_STATE_STOPPED,
		Runs:    vm.GetState() == berthv1.VMState_VM_STATE_RUNNING,
	}
	if why, err := v.API.WhyVM(v.ctx, connect.NewRequest(&berthv1.WhyVMRequest{Vm: name})); err != nil {
		_, said := refusalOf(err)
		shown.WhyNot = said.Text
	} else {
		shown.Why = why.Msg
		shown.Matrix = matrixOf(why.Msg.GetDecision())
	}
	if keys, err := v.API.CompiledKeys(v.ctx, connect.NewRequest(&berthv1.CompiledKeysRequest{Vm: name})); err != nil {
		_, said := refusalOf(err)
		shown.KeysNot = said.Text
	} else {
		shown.Keys = slices.Concat(keys.Msg.GetSystem(), keys.Msg.GetCustomerKeys())
	}
	if history, err := v.API.VMHistory(v.ctx, connect.NewRequest(&berthv1.VMHistoryRequest{Vm: name})); err != nil {
		_, said := refusalOf(err)
		shown.StaysNot = said.Text
	} else {
		shown.Stays, shown.Trimmed = history.Msg.GetStays(), history.Msg.GetTrimmed()
	}
	past, err := v.API.ListHistory(v.ctx, connect.NewRequest(&berthv1.ListHistoryRequest{
		Limit: 20, Of: []berthv1.HistoryKind{berthv1.HistoryKind_HISTORY_KIND_EVENT}, Filter: &berthv1.Filter{Vms: []string{vm.GetId()}},
	}))
	if err != nil {
		_, said := refusalOf(err)
		shown.EventsNot = said.Text
	} else {
		for _, entry := range past.Msg.GetEntries() {
			shown.Events = append(shown.Events, entry.GetEvent())
		}
	}
	called := quoted(vm.GetName())
	return &page{
		name: "guest", Title: "VM " + vm.GetName(), Here: "vms", Body: shown,
		Command: "berth vm show " + called + "; berth vm why " + called + "; berth vm history " + called,
	}, nil
}

// useOf is what a VM has of its node now.
func useOf(told *berthv1.DomainTelemetry) string {
	var parts []string
	if told.GetRssBytes() > 0 {
		parts = append(parts, size(told.GetRssBytes())+" of memory")
	}
	if told != nil && told.CpuRatio != nil {
		parts = append(parts, fmt.Sprintf("%.2f CPUs", told.GetCpuRatio()))
	}
	return strings.Join(parts, ", ")
}

// guestWaits is what a VM waits for: its vCPUs for a CPU, and each of its threads.
func guestWaits(told *berthv1.DomainTelemetry) string {
	var parts []string
	if told != nil && told.VcpuDelayRatio != nil {
		parts = append(parts, fmt.Sprintf("its vCPUs for a CPU %.1f %% of the time", 100*told.GetVcpuDelayRatio()))
	}
	if of := told.GetPressure(); of != nil {
		parts = append(parts, "a thread of it "+pressures(of.GetCpuSome(), of.GetMemorySome(), of.GetIoSome()))
	}
	return strings.Join(parts, "; ")
}

// pressures says for what part of the last ten seconds something waited, in percent.
func pressures(cpu, memory, io float64) string {
	return fmt.Sprintf("for a CPU %.1f %%, for memory %.1f %%, for disks %.1f %% of the last 10 s", cpu, memory, io)
}

// lastGuestPage shows one VM as it was last known. Why it is there, and where it was, only a leader tells.
func lastGuestPage(v *visit, name string) (*page, error) {
	vm, known, err := lastGuest(v, name)
	if err != nil {
		return nil, err
	}
	made := &page{
		name: "guest", Title: "VM " + vm.GetName(), Here: "vms", Command: "berth vm list",
		Body: guestPage{VM: vm, WhyNot: onlyALeader, StaysNot: onlyALeader, EventsNot: onlyALeader},
	}
	return made.date(known), nil
}

const onlyALeader = "only a leader tells, and there is none"

// migrationPage is what a migration would do.
type migrationPage struct {
	VM       *berthv1.VM
	Decision *berthv1.Decision
	Matrix   *matrix
	Wanted   string // node; empty: the best one
	To       string // node; empty: it stays where it is
	Expected string // what it would take, in words; empty: nothing tells
	Nodes    []string
}

// expectation says what a migration would take.
func expectation(of *berthv1.MigrationPrediction) string {
	if of == nil {
		return ""
	}
	span := func(seconds float64) string { return lasting(time.Duration(seconds * float64(time.Second))) }
	text := fmt.Sprintf("It would send %s in about %s, between %s and %s", size(of.GetDataProcessedBytes()), span(of.GetElapsedSeconds()),
		span(of.GetLeastSeconds()), span(of.GetMostSeconds()))
	if downtime := of.GetDowntimeSeconds(); downtime > 0 {
		text += fmt.Sprintf(", and stand still for %s s", units.Figure(downtime))
	}
	return text + ". That follows from " + strings.Join(of.GetBy(), ", ") + "."
}

// previewMigration decides where a VM would go, and moves nothing.
func previewMigration(v *visit) (*page, error) {
	if v.ReadOnly {
		return nil, errReadOnly
	}
	name := v.path("vm")
	answer, err := v.API.GetVM(v.ctx, connect.NewRequest(&berthv1.GetVMRequest{Vm: name}))
	if err != nil {
		return nil, err
	}
	shown := migrationPage{VM: answer.Msg.GetVm(), Wanted: v.asked("node")}
	tried, err := v.API.MigrateVM(v.ctx, connect.NewRequest(&berthv1.MigrateVMRequest{Vm: shown.VM.GetId(), Node: shown.Wanted, DryRun: true}))
	if err != nil {
		return nil, err
	}
	shown.Decision = tried.Msg.GetDecision()
	shown.Matrix, shown.Expected = matrixOf(shown.Decision), expectation(tried.Msg.GetPredicted())
	if shown.Decision.GetOutcome() == berthv1.DecisionOutcome_DECISION_OUTCOME_PLACED {
		shown.To = shown.Decision.GetWinner()
	}
	for _, node := range shown.Decision.GetNodes() {
		if !node.GetCurrent() {
			shown.Nodes = append(shown.Nodes, node.GetNode())
		}
	}
	slices.Sort(shown.Nodes)
	how := " --best"
	if shown.Wanted != "" {
		how = " --to " + quoted(shown.Wanted)
	}
	return &page{
		name: "migration", Title: "Migrate " + shown.VM.GetName(), Here: "vms", Body: shown,
		Command: "berth vm migrate " + quoted(shown.VM.GetName()) + how + " --dry-run",
	}, nil
}

func migrateGuest(v *visit) (string, error) {
	_, err := v.API.MigrateVM(v.ctx, connect.NewRequest(&berthv1.MigrateVMRequest{
		Vm: v.path("vm"), Node: v.asked("node"), RequestId: v.requestID(),
	}))
	return v.backToGuest(), err
}

func startGuest(v *visit) (string, error) {
	_, err := v.API.StartVM(v.ctx, connect.NewRequest(&berthv1.StartVMRequest{Name: v.path("vm"), RequestId: v.requestID()}))
	return v.backToGuest(), err
}

func stopGuest(v *visit) (string, error) {
	_, err := v.API.StopVM(v.ctx, connect.NewRequest(&berthv1.StopVMRequest{Vm: v.path("vm"), RequestId: v.requestID()}))
	return v.backToGuest(), err
}

func rebootGuest(v *visit) (string, error) {
	_, err := v.API.RebootVM(v.ctx, connect.NewRequest(&berthv1.RebootVMRequest{Vm: v.path("vm"), RequestId: v.requestID()}))
	return v.backToGuest(), err
}

func (v *visit) backToGuest() string { return "/vms/" + url.PathEscape(v.path("vm")) }

// requestID makes a form that is sent twice do what it says once. A form that lacks it does so each time.
func (v *visit) requestID() string {
	if id := v.asked("request"); id != "" && len(id) <= 64 {
		return "console-" + id
	}
	return ""
}

// eventsPage is what the page of events shows.
type eventsPage struct {
	Entries                       []*berthv1.HistoryEntry
	VM, Node, By, Kind, Of, Since string
	Called                        bool
	Next                          string
}

// spans are how far back the page of events looks.
var spans = map[string]time.Duration{"1h": time.Hour, "24h": 24 * time.Hour, "7d": 7 * 24 * time.Hour, "30d": 30 * 24 * time.Hour}

// showEvents shows what happened, and with called who did what.
func showEvents(v *visit) (*page, error) {
	shown := eventsPage{
		VM: v.asked("vm"), Node: v.asked("node"), By: v.asked("by"), Kind: v.asked("kind"), Of: v.asked("of"), Since: v.asked("since"),
		Called: v.asked("called") != "",
	}
	filter, command := &berthv1.Filter{}, "berth events"
	kinds := map[string]berthv1.HistoryKind{
		"decisions": berthv1.HistoryKind_HISTORY_KIND_DECISION, "operations": berthv1.HistoryKind_HISTORY_KIND_OPERATION,
	}
	of := berthv1.HistoryKind_HISTORY_KIND_EVENT
	if other, is := kinds[shown.Of]; is {
		of, command = other, "berth "+strings.TrimSuffix(shown.Of, "s")+" list"
	}
	if shown.Called {
		command = "berth audit"
	}
	for _, one := range []struct {
		flag, value string
		into        *[]string
	}{
		{"vm", shown.VM, &filter.Vms},
		{"node", shown.Node, &filter.Nodes},
		{"by", shown.By, &filter.Callers},
		{"kind", shown.Kind, &filter.Kinds},
	} {
		if one.value != "" {
			*one.into = []string{one.value}
			command += " --" + one.flag + " " + quoted(one.value)
		}
	}
	if span, is := spans[shown.Since]; is {
		filter.Since = timestamppb.New(v.now.Add(-span))
		command += " --since " + shown.Since
	}
	answer, err := v.API.ListHistory(v.ctx, connect.NewRequest(&berthv1.ListHistoryRequest{
		Limit: 100, PageToken: v.asked("page"), Filter: filter, Of: []berthv1.HistoryKind{of}, Called: shown.Called,
	}))
	if err != nil {
		return nil, err
	}
	shown.Entries = answer.Msg.GetEntries()
	if token := answer.Msg.GetNextPageToken(); token != "" {
		next := v.request.URL.Query()
		next.Set("page", token)
		shown.Next = "/events?" + next.Encode()
	}
	return &page{name: "events", Title: "Events and audit", Here: "events", Command: command, Body: shown}, nil
}

// about is where the page of something is that an event names as kind/name; empty: it has none.
func about(subject string) string {
	kind, name, _ := strings.Cut(subject, "/")
	switch {
	case name == "":
		return ""
	case kind == "vm":
		return "/vms/" + url.PathEscape(name)
	case kind == "node":
		return "/nodes/" + url.PathEscape(name)
	case kind == "plan":
		return "/plans/" + url.PathEscape(name)
	case kind == "operation":
		return "/operations/" + url.PathEscape(name)
	}
	return ""
}
