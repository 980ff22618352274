package libvirt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	libvirtgo "libvirt.org/go/libvirt"

	"berth/agent/hypervisor"
	"berth/agent/hypervisor/disksizes"
	"berth/agent/hypervisor/disksnapshot"
	"berth/shared/domxml"
)

// domains are the guests that are here, running or defined.
type domains struct {
	*connection
	migrations *migrations
	runDir     string
	guests     guests

	// starting has the UUIDs whose start libvirtd was asked for and has not answered. None of them is positively absent,
	// also when the caller has left: a daemon that hangs carries the order out when it comes back.
	starting sync.Map
	helpers  disksnapshot.Helpers
	sizes    disksizes.Kept
}

// Domains implements hypervisor.Hypervisor. Five lists tell which domains there are, which run, which are paused and why, which are defined
// and which of these are started when the host boots; the rest is known of most.
func (h *domains) Domains(ctx context.Context) ([]hypervisor.Domain, error) {
	domains, err := query(ctx, h.connection, h.readDomains)
	if err != nil {
		return nil, fmt.Errorf("list domains: %w", err)
	}
	for uuid, since := range h.starting.Range {
		if time.Since(since.(time.Time)) < queryTimeout {
			continue // on its way; the list is as of before
		}
		if !slices.ContainsFunc(domains, func(d hypervisor.Domain) bool { return d.UUID == uuid }) {
			return nil, fmt.Errorf("%w: list domains: libvirtd has not answered the start of %s", hypervisor.ErrUnavailable, uuid)
		}
	}
	h.markJobs(ctx, domains, h.migrations.quiet.Is)
	h.migrations.others.Keep(domains)
	h.sizes.Take(domains)
	slices.SortFunc(domains, func(a, b hypervisor.Domain) int { return cmp.Compare(a.UUID, b.UUID) })
	return domains, nil
}

func (h *domains) readDomains(conn *libvirtgo.Connect) ([]hypervisor.Domain, error) {
	persistent, err := listed(conn, libvirtgo.CONNECT_LIST_DOMAINS_PERSISTENT)
	if err != nil {
		return nil, err
	}
	autostart, err := listed(conn, libvirtgo.CONNECT_LIST_DOMAINS_AUTOSTART)
	if err != nil {
		return nil, err
	}
	runs, err := listed(conn, libvirtgo.CONNECT_LIST_DOMAINS_RUNNING)
	if err != nil {
		return nil, err
	}
	paused, err := pauses(conn)
	if err != nil {
		return nil, err
	}
	all, err := conn.ListAllDomains(0)
	if err != nil {
		return nil, err
	}
	defer freeAll(all)
	h.guests.mu.Lock()
	defer h.guests.mu.Unlock()
	domains := make([]hypervisor.Domain, 0, len(all))
	for i := range all {
		domain, err := h.summarize(&all[i], runs, paused)
		if is(err, libvirtgo.ERR_NO_DOMAIN) {
			continue // it ended while we looked
		}
		if err != nil {
			return nil, err
		}
		domain.Persistent, domain.Autostart = persistent[domain.UUID], autostart[domain.UUID]
		domains = append(domains, domain)
	}
	return domains, nil
}

// listed are the UUIDs of the domains that have a property.
func listed(conn *libvirtgo.Connect, with libvirtgo.ConnectListAllDomainsFlags) (map[string]bool, error) {
	domains, err := conn.ListAllDomains(with)
	if err != nil {
		return nil, err
	}
	defer freeAll(domains)
	uuids := make(map[string]bool, len(domains))
	for i := range domains {
		uuid, err := domains[i].GetUUIDString()
		if err != nil {
			return nil, err
		}
		uuids[uuid] = true
	}
	return uuids, nil
}

// pause is libvirt's state of a guest that is paused, in our words.
type pause struct {
	state  hypervisor.State
	reason string
}

// pauses are the guests that are paused, by UUID, with the reason of each. It changes now and then, as in a migration, and not each change
// is an event, so it is asked for each time: of all in one call.
func pauses(conn *libvirtgo.Connect) (map[string]pause, error) {
	all, err := conn.GetAllDomainStats(nil, libvirtgo.DOMAIN_STATS_STATE, libvirtgo.CONNECT_GET_ALL_DOMAINS_STATS_PAUSED)
	if err != nil {
		return nil, err
	}
	defer func() {
		for i := range all {
			free(all[i].Domain)
		}
	}()
	paused := make(map[string]pause, len(all))
	for _, one := range all {
		if one.State == nil || !one.State.StateSet || !one.State.ReasonSet || one.State.State != libvirtgo.DOMAIN_PAUSED {
			continue // it has just gone on, or ended
		}
		uuid, err := one.Domain.GetUUIDString()
		if err != nil {
			return nil, err
		}
		state, reason := stateOf(one.State.State, one.State.Reason)
		paused[uuid] = pause{state, reason}
	}
	return paused, nil
}

// summarize describes a domain. Of one that runs or is paused, what is known suffices; any other is asked for everything. The guests are
// locked.
func (h *domains) summarize(d *libvirtgo.Domain, runs map[string]bool, paused map[string]pause) (hypervisor.Domain, error) {
	uuid, err := d.GetUUIDString()
	if err != nil {
		return hypervisor.Domain{}, err
	}
	why, isPaused := paused[uuid]
	if !runs[uuid] && !isPaused {
		return describe(d)
	}
	one, err := h.guest(d, uuid)
	if err != nil {
		return describe(d) // it has just been switched off
	}
	if err := one.ask(d, time.Now()); err != nil {
		return hypervisor.Domain{}, err
	}
	if err := one.askMark(d); err != nil {
		return hypervisor.Domain{}, err
	}
	state, reason := hypervisor.Running, one.reason
	if isPaused {
		state, reason = why.state, why.reason
	}
	name, err := d.GetName()
	return hypervisor.Domain{
		UUID: uuid, Name: name, State: state, Reason: reason, MemoryBytes: one.memory, VCPUs: one.vcpus,
		Managed: one.managed, Epoch: one.mark.Epoch, OperationID: one.mark.Operation,
		Sources: one.attached.Written, Devices: one.attached.Devices, Bindings: one.attached.Bindings,
	}, err
}

// Lookup implements hypervisor.Hypervisor.
func (h *domains) Lookup(ctx context.Context, uuid string) (hypervisor.Domain, error) {
	if h.migrations.departures.Gone(uuid) {
		return hypervisor.Domain{UUID: uuid, State: hypervisor.Absent, JobActive: true}, nil
	}
	_, startingBefore := h.starting.Load(uuid)
	domain, err := query(ctx, h.connection, func(conn *libvirtgo.Connect) (hypervisor.Domain, error) {
		d, err := lookup(conn, uuid)
		if err != nil {
			return hypervisor.Domain{}, err
		}
		defer free(d)
		return describe(d)
	})
	if _, starting := h.starting.Load(uuid); (starting || startingBefore) && errors.Is(err, hypervisor.ErrNotFound) {
		err = fmt.Errorf("%w: libvirtd has not answered its start", hypervisor.ErrUnavailable)
	}
	if err != nil {
		return hypervisor.Domain{}, fmt.Errorf("look domain %s up: %w", uuid, err)
	}
	h.sizes.Fill(&domain)
	one := []hypervisor.Domain{domain}
	h.markJobs(ctx, one, func(string) bool { return false })
	return one[0], nil
}

// XML implements hypervisor.Hypervisor.
func (h *domains) XML(ctx context.Context, uuid string) (string, error) {
	return h.document(ctx, uuid, libvirtgo.DOMAIN_XML_SECURE|libvirtgo.DOMAIN_XML_MIGRATABLE)
}

// Document implements hypervisor.Hypervisor. libvirt leaves out secrets unless it is asked for them.
func (h *domains) Document(ctx context.Context, uuid string) (string, error) {
	return h.document(ctx, uuid, 0)
}

func (h *domains) document(ctx context.Context, uuid string, flags libvirtgo.DomainXMLFlags) (string, error) {
	text, err := query(ctx, h.connection, func(conn *libvirtgo.Connect) (string, error) {
		d, err := lookup(conn, uuid)
		if err != nil {
			return "", err
		}
		defer free(d)
		return d.GetXMLDesc(flags)
	})
	if err != nil {
		return "", fmt.Errorf("read the XML of domain %s: %w", uuid, err)
	}
	return text, nil
}

// describe reads a domain with calls that need neither its process nor its job lock.
func describe(d *libvirtgo.Domain) (hypervisor.Domain, error) {
	var domain hypervisor.Domain
	var err error
	if domain.UUID, err = d.GetUUIDString(); err != nil {
		return domain, err
	}
	if domain.Name, err = d.GetName(); err != nil {
		return domain, err
	}
	state, reason, err := d.GetState()
	if err != nil {
		return domain, err
	}
	domain.State, domain.Reason = stateOf(state, reason)
	info, err := d.GetInfo()
	if err != nil {
		return domain, err
	}
	domain.MemoryBytes, domain.VCPUs = int64(info.MaxMem)<<10, int(info.NrVirtCpu)
	if domain.Persistent, err = d.IsPersistent(); err != nil {
		return domain, err
	}
	if domain.Persistent {
		if domain.Autostart, err = d.GetAutostart(); err != nil {
			return domain, err
		}
		if state == libvirtgo.DOMAIN_SHUTOFF {
			if domain.Saved, err = d.HasManagedSaveImage(0); err != nil {
				return domain, err
			}
		}
	}
	if !domain.Persistent && state == libvirtgo.DOMAIN_SHUTOFF && libvirtgo.DomainShutoffReason(reason) == libvirtgo.DOMAIN_SHUTOFF_UNKNOWN {
		domain.State, domain.Reason = hypervisor.Starting, "not launched yet" // nobody keeps one that has never run
	}
	mark, managed, err := markOf(d)
	if err != nil {
		return domain, err
	}
	domain.Managed, domain.Epoch, domain.OperationID = managed, mark.Epoch, mark.Operation
	if domain.State != hypervisor.Shutoff {
		var attached hypervisor.Attached
		attached, err = attachedTo(d)
		domain.Sources, domain.Devices, domain.Bindings = attached.Written, attached.Devices, attached.Bindings
	}
	return domain, err
}

var documents hypervisor.Documents // of the guests

// attachedTo reads the devices of a domain. That needs neither its process nor its job lock. A document that cannot be read hides no
// domain: the only error is that the domain has ended.
func attachedTo(d *libvirtgo.Domain) (hypervisor.Attached, error) { return attachedBy(d, "") }

// attachedBy is the same by a document of it that was just read; empty: it was not.
func attachedBy(d *libvirtgo.Domain, text string) (_ hypervisor.Attached, err error) {
	if text == "" {
		text, err = d.GetXMLDesc(0)
	}
	if is(err, libvirtgo.ERR_NO_DOMAIN) {
		return hypervisor.Attached{}, err
	}
	if err != nil {
		return hypervisor.Attached{}, nil //nolint:nilerr // as it says above
	}
	attached, _ := documents.AttachedIn(text)
	if attached.Bindings != nil {
		attached.Bindings = append(attached.Bindings, snapshotsOf(d)...)
	}
	return attached, nil
}

// snapshotsOf are the snapshots that libvirt keeps of a domain, of whatever sort: it migrates none that has any.
func snapshotsOf(d *libvirtgo.Domain) []domxml.Binding {
	count, err := d.SnapshotNum(0)
	if err != nil || count == 0 {
		return nil // a driver without snapshots has none
	}
	one := domxml.Binding{Kind: domxml.SnapshotsBinding, Count: count}
	if names, err := d.SnapshotListNames(0); err == nil && len(names) > 0 {
		one.Name = names[0]
	}
	return []domxml.Binding{one}
}

// markOf reads Berth's mark of a domain. No mark is not an error. A domain without a definition that does not run has no
// metadata of its own to libvirt, but is there until the call ends that has ended it: for as long as a migration's source
// waits for a silent target. Its document can be read.
func markOf(d *libvirtgo.Domain) (domxml.Mark, bool, error) {
	text, err := d.GetMetadata(libvirtgo.DOMAIN_METADATA_ELEMENT, domxml.Namespace, libvirtgo.DOMAIN_AFFECT_CURRENT)
	if is(err, libvirtgo.ERR_NO_DOMAIN_METADATA) {
		return domxml.Mark{}, false, nil
	}
	if is(err, libvirtgo.ERR_OPERATION_INVALID) {
		text, err = d.GetXMLDesc(0)
		if err != nil {
			return domxml.Mark{}, false, err
		}
		mark, ok := domxml.Metadata(text)
		return mark, ok, nil
	}
	if err != nil {
		return domxml.Mark{}, false, err
	}
	mark, ok := domxml.ParseMark(text)
	return mark, ok, nil
}

func free(d *libvirtgo.Domain) { _ = d.Free() }

func freeAll(list []libvirtgo.Domain) {
	for i := range list {
		free(&list[i])
	}
}
