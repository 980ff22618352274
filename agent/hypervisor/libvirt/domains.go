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
	"berth/shared/domxml"
)

// jobTimeout is how long the question for a domain's job may wait for the guest's process.
const jobTimeout = time.Second

// Domains implements hypervisor.Hypervisor.
func (h *Hypervisor) Domains(ctx context.Context) ([]hypervisor.Domain, error) {
	domains, err := query(ctx, h, func(conn *libvirtgo.Connect) ([]hypervisor.Domain, error) {
		list, err := conn.ListAllDomains(0)
		if err != nil {
			return nil, err
		}
		defer freeAll(list)
		domains := make([]hypervisor.Domain, 0, len(list))
		for i := range list {
			domain, err := describe(&list[i])
			if is(err, libvirtgo.ERR_NO_DOMAIN) {
				continue // it ended while we looked
			}
			if err != nil {
				return nil, err
			}
			domains = append(domains, domain)
		}
		return domains, nil
	})
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
	h.markJobs(ctx, domains)
	slices.SortFunc(domains, func(a, b hypervisor.Domain) int { return cmp.Compare(a.UUID, b.UUID) })
	return domains, nil
}

// Lookup implements hypervisor.Hypervisor.
func (h *Hypervisor) Lookup(ctx context.Context, uuid string) (hypervisor.Domain, error) {
	_, startingBefore := h.starting.Load(uuid)
	domain, err := query(ctx, h, func(conn *libvirtgo.Connect) (hypervisor.Domain, error) {
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
	one := []hypervisor.Domain{domain}
	h.markJobs(ctx, one)
	return one[0], nil
}

// XML implements hypervisor.Hypervisor.
func (h *Hypervisor) XML(ctx context.Context, uuid string) (string, error) {
	text, err := query(ctx, h, func(conn *libvirtgo.Connect) (string, error) {
		d, err := lookup(conn, uuid)
		if err != nil {
			return "", err
		}
		defer free(d)
		return d.GetXMLDesc(libvirtgo.DOMAIN_XML_SECURE | libvirtgo.DOMAIN_XML_MIGRATABLE)
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
	mark, managed, err := markOf(d)
	if err != nil {
		return domain, err
	}
	domain.Managed, domain.Epoch, domain.OperationID = managed, mark.Epoch, mark.Operation
	return domain, nil
}

// markOf reads Berth's mark of a domain. No mark is not an error.
func markOf(d *libvirtgo.Domain) (domxml.Mark, bool, error) {
	text, err := d.GetMetadata(libvirtgo.DOMAIN_METADATA_ELEMENT, domxml.Namespace, libvirtgo.DOMAIN_AFFECT_CURRENT)
	if is(err, libvirtgo.ERR_NO_DOMAIN_METADATA) {
		return domxml.Mark{}, false, nil
	}
	if err != nil {
		return domxml.Mark{}, false, err
	}
	mark, ok := domxml.ParseMark(text)
	return mark, ok, nil
}

// markJobs fills JobActive in. That question waits for the guest's process, so each one is bounded, and a domain that
// does not answer is busy with something: that is what JobActive warns of.
func (h *Hypervisor) markJobs(ctx context.Context, domains []hypervisor.Domain) {
	var group sync.WaitGroup
	slots := make(chan struct{}, 4)
	for i := range domains {
		domain := &domains[i]
		if !domain.Managed || domain.State == hypervisor.Shutoff {
			continue
		}
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			domain.JobActive = h.jobActive(ctx, domain.UUID)
		})
	}
	group.Wait()
}

func (h *Hypervisor) jobActive(ctx context.Context, uuid string) bool {
	stats, err := h.jobStats(ctx, uuid, 0)
	switch {
	case is(err, libvirtgo.ERR_OPERATION_INVALID):
		return true // an incoming migration has no figures, and no other job refuses to tell them
	case is(err, libvirtgo.ERR_NO_DOMAIN):
		return false
	case err != nil:
		return errors.Is(err, errHung)
	}
	return isMigration(stats) && (stats.Type == libvirtgo.DOMAIN_JOB_BOUNDED || stats.Type == libvirtgo.DOMAIN_JOB_UNBOUNDED)
}

func isMigration(stats *libvirtgo.DomainJobInfo) bool {
	return !stats.OperationSet || stats.Operation == libvirtgo.DOMAIN_JOB_OPERATION_MIGRATION_OUT ||
		stats.Operation == libvirtgo.DOMAIN_JOB_OPERATION_MIGRATION_IN
}

func free(d *libvirtgo.Domain) { _ = d.Free() }

func freeAll(list []libvirtgo.Domain) {
	for i := range list {
		free(&list[i])
	}
}
