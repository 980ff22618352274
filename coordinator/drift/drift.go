// Package drift compares what a guest runs with and what its record says. People change guests beside Berth: they take snapshots, copy
// disks to another place, attach and detach devices. The running guest is right about itself, so its next start uses what it ran with last.
// It is pure: records and reports go in, and what differs comes out.
package drift

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"berth/coordinator/admission"
	"berth/coordinator/connected"
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/shared/domxml"
	"berth/shared/domxml/guard"
)

// Baseline are the disks and interfaces that a VM is started with by its record. The error says that its record leads nowhere.
func Baseline(source estate.Source, vm *model.VM) ([]domxml.Device, error) {
	spec, err := estate.SpecOf(source, *vm)
	if err != nil {
		return nil, err
	}
	return operation.Devices(&spec, vm.ID)
}

// Compare tells what of a running guest differs both from what it was started with and from its record, by kind and key: a record that was
// changed since takes effect at the next start, and that is no drift. Facts are of the node that shows it: there a file in the folder of a
// pool can be named both ways. An edit has the element that the node has told if that is what it says it is, else one that is made of what
// is known.
func Compare(vm *model.VM, baseline []domxml.Device, live []model.Device, facts *model.NodeFacts) []model.DeviceEdit {
	c := comparison{vm: vm, record: baseline, live: live, facts: facts}
	c.unnamed = slices.ContainsFunc(baseline, func(d domxml.Device) bool { return d.Key == "" })
	var edits []model.DeviceEdit
	for i := range live {
		if edit, differs := c.shown(&live[i]); differs {
			edits = append(edits, edit)
		}
	}
	for i := range vm.Ran {
		if edit, differs := c.missing(&vm.Ran[i]); differs {
			edits = append(edits, edit)
		}
	}
	slices.SortFunc(edits, func(a, b model.DeviceEdit) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Key, b.Key))
	})
	return bounded(edits)
}

// comparison is one call of Compare.
type comparison struct {
	vm      *model.VM
	record  []domxml.Device
	live    []model.Device
	facts   *model.NodeFacts
	unnamed bool // a document without addresses gets others at each start
}

// shown compares a device that the node shows.
func (c *comparison) shown(one *model.Device) (model.DeviceEdit, bool) {
	twice := 0
	for i := range c.live {
		if c.live[i].Kind == one.Kind && strings.EqualFold(c.live[i].Key, one.Key) {
			twice++
		}
	}
	if one.Key == "" || twice > 1 || c.ofNoUse(one.Kind) || strings.HasPrefix(one.Source.FileName(), seedOf(c.vm)) {
		return model.DeviceEdit{}, false // the seed is added by the node
	}
	record, started := c.inRecord(one.Kind, one.Key), c.startedWith(one.Kind, one.Key)
	for _, known := range []*model.RanDevice{record, started} {
		if known == nil {
			continue
		}
		switch same(known, one, c.facts) {
		case yes:
			return model.DeviceEdit{}, false
		case unknown: // what was seen before counts
			for _, old := range c.vm.Drifted() {
				if old.Kind == one.Kind && old.Key == one.Key {
					return old, true
				}
			}
			return model.DeviceEdit{}, false
		}
	}
	edit := model.DeviceEdit{
		Kind: one.Kind, Key: one.Key, Is: ran(one).text(), Source: one.Source, Media: one.Media, XML: one.XML,
	}
	was := record
	if c.vm.Ran != nil {
		was = started
	}
	if was != nil {
		edit.Was = (*known)(was).text()
	}
	if !isWhatItSays(one) {
		edit.XML = c.made(one)
	}
	return edit, true
}

// missing compares a device that the VM was started with. One that only its record has was added to that since.
func (c *comparison) missing(one *model.RanDevice) (model.DeviceEdit, bool) {
	lives := func(d model.Device) bool { return d.Kind == one.Kind && strings.EqualFold(d.Key, one.Key) }
	if one.Key == "" || c.ofNoUse(one.Kind) || slices.ContainsFunc(c.live, lives) || c.inRecord(one.Kind, one.Key) == nil {
		return model.DeviceEdit{}, false
	}
	return model.DeviceEdit{Kind: one.Kind, Key: one.Key, Was: (*known)(one).text(), Media: one.Media}, true
}

func (c *comparison) ofNoUse(kind string) bool {
	return c.unnamed && kind == string(domxml.InterfaceDevice)
}

func (c *comparison) inRecord(kind, key string) *model.RanDevice {
	at := slices.IndexFunc(c.record, func(d domxml.Device) bool { return is(&d, kind, key) })
	if at < 0 {
		return nil
	}
	return &operation.Ran(c.record[at : at+1])[0]
}

func (c *comparison) startedWith(kind, key string) *model.RanDevice {
	at := slices.IndexFunc(c.vm.Ran, func(d model.RanDevice) bool { return d.Kind == kind && strings.EqualFold(d.Key, key) })
	if at < 0 {
		return nil
	}
	return &c.vm.Ran[at]
}

// made is an element of what is known of a device; empty: it cannot be made, and the VM is not started with it by itself.
func (c *comparison) made(one *model.Device) string {
	if one.Kind == string(domxml.InterfaceDevice) && one.Network == "" {
		return "" // a device of its host, perhaps
	}
	old := ""
	if at := slices.IndexFunc(c.record, func(d domxml.Device) bool { return is(&d, one.Kind, one.Key) }); at >= 0 {
		old = c.record[at].XML
	}
	text, err := domxml.MakeDevice(old, domxml.Device{
		Kind: domxml.DeviceKind(one.Kind), Key: one.Key, Source: domxml.Source(one.Source), Format: one.Format, Network: one.Network,
		Media: one.Media,
	})
	if err != nil {
		return ""
	}
	return text
}

// isWhatItSays tells whether the element of a device is that device: it comes from a node, and other nodes are to start it.
func isWhatItSays(one *model.Device) bool {
	found, err := domxml.DeviceOf(one.XML)
	if err != nil {
		return false
	}
	d := &found
	known := d.Source != (domxml.Source{}) || d.Network != "" || d.Media
	return known && is(d, one.Kind, one.Key) && model.DiskSource(d.Source) == one.Source && d.Network == one.Network && d.Media == one.Media
}

// bounded keeps what has room in a record: disks first, since they come first. An edit whose element has none keeps the VM from being
// started without it.
func bounded(edits []model.DeviceEdit) []model.DeviceEdit {
	const longText = 2 << 10
	edits = edits[:min(len(edits), model.MaxDriftEdits)]
	length := 0
	for i := range edits {
		one := &edits[i]
		one.Key, one.Was, one.Is = cut(one.Key, longText), cut(one.Was, longText), cut(one.Is, longText)
		if length += len(one.XML); length > model.MaxDriftXML {
			one.XML = ""
		}
	}
	return edits
}

func cut(text string, most int) string { return text[:min(len(text), most)] }

// After is the record of a VM that ran on a node with these edits, and whether that is news.
func After(vm model.VM, edits []model.DeviceEdit, node string, at time.Time) (after model.VM, news bool) {
	if slices.EqualFunc(edits, vm.Drifted(), alike) && (vm.Drift == nil || vm.Drift.Node == node) {
		return vm, false
	}
	if len(edits) == 0 {
		vm.Drift = nil
		return vm, true
	}
	edits = slices.Clone(edits)
	for i := range edits { // who has made a change with Berth is known from before
		for _, old := range vm.Drifted() {
			along := old.By != "" && old.Source.Volume != "" && old.Source.Volume == edits[i].Source.Volume // it was copied along with its VM
			if old.Names(edits[i].Kind, edits[i].Key) && (old.Is == edits[i].Is || along) {
				edits[i].By, edits[i].At = old.By, old.At
			}
		}
	}
	drift := model.Drift{Node: node, Since: at, Edits: edits}
	if old := vm.Drift; old != nil && slices.EqualFunc(edits, old.Edits, alike) { // it has moved with them
		drift.Since, drift.Accepted, drift.Reverted = old.Since, old.Accepted, old.Reverted
	}
	vm.Drift = &drift
	return vm, true
}

// alike tells whether two edits are the same change: how the element is written and who has made it does not matter.
func alike(a, b model.DeviceEdit) bool {
	a.Needs, b.Needs, a.Found, b.Found, a.Rivals, b.Rivals = "", "", false, false, "", ""
	a.XML, b.XML, a.By, b.By, a.At, b.At = "", "", "", "", time.Time{}, time.Time{}
	return a == b
}

// Asked is what somebody has to decide before a VM is started: its disk is under a newer file, or it was changed beside Berth to what its
// cluster does not permit. The text has both versions, and which permission it takes. Empty: nothing. Cluster is the record of the VM's.
func Asked(vm *model.VM, cluster *model.Resource) string {
	var found, texts []string
	for _, edit := range vm.Edits() {
		if vm.Undecided(&edit) {
			found = append(found, edit.Text())
		} else if lacks := vm.Asks(&edit, cluster); lacks != "" {
			texts = append(texts, edit.Text()+", which needs the permission "+lacks)
		}
	}
	if len(texts) > 0 {
		found = append(found, strings.Join(texts, "; ")+", and that is not permitted")
	}
	return strings.Join(found, "; ")
}

// Judged are edits with what each needs to be started on any node.
func Judged(edits []model.DeviceEdit, baseline []domxml.Device, permitted guard.Permitted) []model.DeviceEdit {
	beside := make([]model.DiskSource, 0, len(baseline))
	for i := range baseline {
		beside = append(beside, model.DiskSource(baseline[i].Source))
	}
	edits = slices.Clone(edits)
	for i := range edits {
		one := &edits[i]
		one.Needs = ""
		if one.XML == "" {
			continue // nothing to start it with: Conflict says so
		}
		found, err := admission.Device(one.XML, beside, permitted)
		if err != nil {
			found = []guard.Finding{{Permission: guard.UnknownElements}}
		}
		one.Needs = guard.Join(guard.Needs(found))
	}
	return edits
}

// Conflict is why a VM cannot be started with its edits any more, because its record was changed under them; empty: it can.
func Conflict(vm *model.VM, baseline []domxml.Device) string {
	for _, edit := range vm.Edits() {
		if err := startable(&edit); err != nil {
			return err.Error()
		}
		at := slices.IndexFunc(baseline, func(d domxml.Device) bool { return is(&d, edit.Kind, edit.Key) })
		now := ""
		if at >= 0 {
			now = text(&baseline[at])
		}
		switch {
		case now == edit.Was, edit.Media: // what is in a drive is no disk that somebody could have written to
		case edit.Is == "" && now == "": // it was detached, and the record has it no more
		default:
			return fmt.Sprintf("%s; since then its record was changed, which has %s there now", edit.Text(), cmp.Or(now, "nothing"))
		}
	}
	return ""
}

func is(device *domxml.Device, kind, key string) bool {
	return string(device.Kind) == kind && strings.EqualFold(device.Key, key)
}

// answer is whether two devices are the same.
type answer int

const (
	no answer = iota
	yes
	unknown
)

func same(device *model.RanDevice, live *model.Device, facts *model.NodeFacts) answer {
	is := func(so bool) answer {
		if so {
			return yes
		}
		return no
	}
	a, b := device.Source, live.Source
	switch { // a disk of a network pool can be named by its volume as well
	case device.Network != "" && live.Network != "" || device.Kind == string(domxml.InterfaceDevice):
		return is(device.Network == live.Network)
	case device.Network != "" && path.Base(device.Network) == b.Volume, live.Network != "" && path.Base(live.Network) == a.Volume:
		return unknown
	case device.Network != live.Network:
		return no
	}
	if (a.Path == "") == (b.Path == "") || a == (model.DiskSource{}) || b == (model.DiskSource{}) {
		return is(a == b || a.Path != "" && path.Clean(a.Path) == path.Clean(b.Path))
	}
	volume, file := a, b
	if a.Path != "" {
		volume, file = b, a
	}
	for _, pool := range facts.Pools {
		if pool.Name == volume.Pool && pool.Path != "" {
			return is(path.Clean(file.Path) == path.Join(pool.Path, volume.Volume))
		}
	}
	if volume.FileName() != file.FileName() {
		return no
	}
	return unknown // the node does not tell where the pool is
}

// known is a device as it is told to people.
type known model.RanDevice

func ran(d *model.Device) *known {
	return &known{Kind: d.Kind, Key: d.Key, Source: d.Source, Network: d.Network, Media: d.Media}
}

func (d *known) text() string {
	switch {
	case d.Kind == string(domxml.InterfaceDevice):
		return cmp.Or(d.Network, connected.Nowhere)
	case d.Source != (model.DiskSource{}):
		return d.Source.Text()
	case d.Network != "":
		return d.Network
	case d.Media:
		return "empty"
	default:
		return "neither a file nor a volume"
	}
}

func text(d *domxml.Device) string {
	return (&known{Kind: string(d.Kind), Source: model.DiskSource(d.Source), Network: d.Network, Media: d.Media}).text()
}

func seedOf(vm *model.VM) string {
	return strings.TrimSuffix(model.VolumeName(model.SeedID(vm.ID), ""), ".")
}

// Events tell what has changed between two records of a VM.
func Events(before, after *model.VM, at time.Time, caller string) []model.Event {
	var events []model.Event
	tell := func(kind, text string) {
		events = append(events, model.Event{At: at, Kind: kind, Subject: "vm/" + after.Name, Caller: caller, Message: text})
	}
	for _, edit := range after.ChangedBeside() {
		if !slices.ContainsFunc(before.Drifted(), func(old model.DeviceEdit) bool { return alike(old, edit) }) {
			follows := "its next start uses that"
			if after.Undecided(&edit) {
				follows = "it is not started before somebody has decided what is right"
			}
			tell("vm.changed-beside", edit.Text()+": "+follows)
		}
	}
	for _, edit := range before.Drifted() {
		if !slices.ContainsFunc(after.Drifted(), func(now model.DeviceEdit) bool { return now.Kind == edit.Kind && now.Key == edit.Key }) {
			text := edit.Kind + " " + edit.Key + " is as its record has it again"
			if edit.Kind == string(domxml.DiskDevice) && !edit.Media && edit.Is != "" && edit.Was != "" {
				// Somebody has copied it back, or has started the VM from an older definition: nothing here tells which.
				text += ", and is not " + edit.Is + " any more: what was written only there is not in the guest"
			}
			tell("vm.as-recorded", text)
		}
	}
	if is, was := after.Spec.VCPUs, before.Spec.VCPUs; is != was {
		tell("vm.changed-beside", fmt.Sprintf("it has %d vCPUs beside Berth, and had %d: its next start has them too; "+
			"'berth vm set %s --vcpus %d --now' takes that back", is, was, model.Argument(after.Name), was))
	}
	switch {
	case after.Bound != "" && before.Bound == "":
		tell("vm.bound", "a disk of it is in no pool that is declared as shared: it stays on its node")
	case after.Bound == "" && before.Bound != "":
		tell("vm.unbound", "all its disks are in pools that are declared as shared")
	}
	return events
}

// ErrNotStartable is wrapped when a change cannot become part of a VM's record.
var ErrNotStartable = errors.New("and Berth cannot start it with that")

// startable refuses a change to a device that Berth has no element for. The error is ErrNotStartable.
func startable(edit *model.DeviceEdit) error {
	if edit.Is != "" && edit.XML == "" {
		return fmt.Errorf("%s, %w", edit.Text(), ErrNotStartable)
	}
	return nil
}

// Accepted is a VM whose record has what somebody has changed of it beside Berth. One that is described by XML has it there from now on.
func Accepted(vm model.VM) (model.VM, error) {
	vm.Condition = decided(&vm)
	if vm.Spec.XML == "" {
		drift := *vm.Drift
		drift.Accepted, drift.Reverted = true, false
		vm.Drift = &drift
		return vm, nil
	}
	var changes []domxml.DeviceEdit
	for _, edit := range vm.Drift.Edits {
		if err := startable(&edit); err != nil { // an empty text would take the device out of the document
			return vm, err
		}
		changes = append(changes, domxml.DeviceEdit{Kind: domxml.DeviceKind(edit.Kind), Key: edit.Key, XML: edit.XML})
	}
	text, err := domxml.EditDevices(vm.Spec.XML, changes)
	if err != nil {
		return vm, err
	}
	ran := ranSince(&vm)
	if ran == nil {
		devices, err := domxml.Devices(text)
		if err != nil {
			return vm, err
		}
		ran = operation.Ran(devices) // what was accepted is what it runs with
	}
	vm.Spec.XML, vm.Drift, vm.Ran = text, nil, ran
	return vm, nil
}

// ranSince are the devices that a VM was started with, and those in their place that it runs with since: what is changed next was changed
// from these.
func ranSince(vm *model.VM) []model.RanDevice {
	if vm.Ran == nil {
		return nil // not known
	}
	ran := slices.Clone(vm.Ran)
	for _, edit := range vm.Drift.Edits {
		ran = slices.DeleteFunc(ran, func(d model.RanDevice) bool { return d.Kind == edit.Kind && strings.EqualFold(d.Key, edit.Key) })
		if device, err := domxml.DeviceOf(edit.XML); edit.Is != "" && err == nil {
			ran = append(ran, operation.Ran([]domxml.Device{device})...)
		}
	}
	return ran
}

// Reverted is a VM whose next start uses its record, whatever it has run with.
func Reverted(vm model.VM) model.VM {
	vm.Condition = decided(&vm)
	drift := *vm.Drift
	drift.Accepted, drift.Reverted = false, true
	vm.Drift = &drift
	return vm
}

// decided is the condition of a VM once somebody has said what is right of it: that this was missing is over.
func decided(vm *model.VM) model.Condition {
	if vm.Condition.Is(model.RestartRefused) && slices.ContainsFunc(vm.Drift.Edits, func(e model.DeviceEdit) bool { return e.Found }) {
		return model.Condition{}
	}
	return vm.Condition
}
