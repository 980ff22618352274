package hypervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Process is what the operating system shows of a guest, whatever the hypervisor lists: its process, or a machine scope of its that
// still has processes.
type Process struct {
	PID   int    // one of them
	UUID  string // of the guest; empty: of the scope only the guest's name is known
	Name  string // of the guest, as the process or the scope has it
	Scope string // of the control group; empty: the process itself was seen
}

// is tells whether the process is a guest's. The name may be empty: not known.
func (p *Process) is(uuid, name string) bool {
	return p.UUID == uuid || p.UUID == "" && name != "" && p.Name == ScopeName(name)
}

// orphan is the guest as it is shown.
func (p *Process) orphan(uuid, name string) Domain {
	if p.UUID != "" && p.Name != "" {
		name = p.Name
	}
	reason := fmt.Sprintf("process %d runs it, libvirt does not list it", p.PID)
	if p.Scope != "" {
		reason = fmt.Sprintf("process %d is left in %s, libvirt does not list the guest", p.PID, p.Scope)
	}
	return Domain{UUID: uuid, Name: name, State: Orphan, Reason: reason, PID: p.PID}
}

// ScopeName is a guest's name as the name of its machine scope has it: systemd-machined takes no other characters.
func ScopeName(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '.':
			return r
		}
		return -1
	}, name)
}

// Look is Lookup that takes no list's word for absence: a daemon that restarts can forget a guest whose process runs on. Such a
// guest is Orphan, and one whose processes cannot be seen is ErrUnavailable. The name may be empty: then its machine scope is
// not found.
func Look(ctx context.Context, h Hypervisor, uuid, name string) (Domain, error) {
	domain, err := h.Lookup(ctx, uuid)
	if runs := err == nil && domain.State != Shutoff; runs || err != nil && !errors.Is(err, ErrNotFound) {
		return domain, err
	}
	processes, unseen := h.Processes(ctx)
	if unseen != nil {
		return Domain{}, fmt.Errorf("look whether domain %s has a process: %w", uuid, unseen)
	}
	at := slices.IndexFunc(processes, func(p Process) bool { return p.is(uuid, name) })
	if at < 0 {
		return domain, err
	}
	// It may have been started since the first question.
	if again, err := h.Lookup(ctx, uuid); err == nil && again.State != Shutoff || err != nil && !errors.Is(err, ErrNotFound) {
		return again, err
	}
	return processes[at].orphan(uuid, name), nil
}

// Lister lists the domains of a host with those that the hypervisor has forgotten. The zero value is ready. It is not safe for
// concurrent use.
type Lister struct {
	ran map[string]string // UUIDs and names of what the last list showed at work
}

// List is Domains with the orphans: every guest whose process runs and that the hypervisor does not list, whoever brought it here.
// Somebody may have moved a guest here by hand, and the daemon may have forgotten it, while nobody made a list. Of a guest whose process is
// just ending only the name of its scope is left; such ones are looked for among those that ran at the last list, and those that are
// expected: whichever this host may have run before.
func (l *Lister) List(ctx context.Context, h Hypervisor, expected []string) ([]Domain, error) {
	domains, err := h.Domains(ctx)
	if err != nil {
		return nil, err
	}
	processes, err := h.Processes(ctx)
	if err != nil {
		return nil, fmt.Errorf("look whether guests that are not listed have processes: %w", err)
	}
	if missing := l.missing(domains, processes, expected); len(missing) > 0 {
		if domains, err = withOrphans(ctx, h, domains, processes, missing); err != nil {
			return nil, err
		}
	}
	l.ran = map[string]string{}
	for i := range domains {
		if domains[i].State != Shutoff {
			l.ran[domains[i].UUID] = domains[i].Name
		}
	}
	return domains, nil
}

// missing are the guests that may run here and are not listed at work, with their names.
func (l *Lister) missing(domains []Domain, processes []Process, expected []string) map[string]string {
	missing := map[string]string{}
	for i := range processes {
		if uuid := processes[i].UUID; uuid != "" {
			missing[uuid] = ""
		}
	}
	for _, uuid := range expected {
		missing[uuid] = ""
	}
	for uuid, name := range l.ran {
		missing[uuid] = name
	}
	for i := range domains {
		if one := &domains[i]; one.State != Shutoff {
			delete(missing, one.UUID)
		} else if _, asked := missing[one.UUID]; asked {
			missing[one.UUID] = one.Name
		}
	}
	return missing
}

// withOrphans adds the missing guests that have a process.
func withOrphans(
	ctx context.Context, h Hypervisor, domains []Domain, processes []Process, missing map[string]string,
) ([]Domain, error) {
	for uuid, name := range missing {
		at := slices.IndexFunc(processes, func(p Process) bool { return p.is(uuid, name) })
		if at < 0 {
			continue
		}
		now, err := h.Lookup(ctx, uuid)
		switch {
		case err != nil && !errors.Is(err, ErrNotFound):
			return nil, err
		case err != nil || now.State == Shutoff:
			now = processes[at].orphan(uuid, name)
		}
		domains = slices.DeleteFunc(domains, func(d Domain) bool { return d.UUID == uuid })
		domains = append(domains, now)
	}
	slices.SortFunc(domains, func(a, b Domain) int { return strings.Compare(a.UUID, b.UUID) })
	return domains, nil
}
