// Package metrics says what a coordinator tells Prometheus: contention first, and what is promised beside what is used.
//
// It is pure: figures of one moment go in, samples come out, and nothing is kept but what is counted (Totals). The names begin with
// berth_, amounts are in seconds, bytes and ratios, and no label has a value that people or guests can make as many of as they like: a
// VM is its UUID, and its name is in berth_vm_info alone.
package metrics

import (
	"slices"
	"time"

	"berth/shared/exposition"
)

// Scrape is all that one page is made of.
type Scrape struct {
	At     time.Time
	Member Member
	Totals *Totals
	Site   *Site // nil: this member does not lead, so no agent reports to it
}

// Write writes a page.
func Write(page *exposition.Page, s *Scrape) {
	writeMember(page, &s.Member)
	page.Flag(&reportsFamily, s.Site != nil)
	if s.Site != nil {
		writeSite(page, s.Site)
		writeNodes(page, s.Site.View)
		writeVMs(page, s.Site)
	}
	s.Totals.write(page)
}

var reportsFamily = gauge("berth_reports_available",
	"1 where the agents report to this coordinator, because it leads: it has the figures of nodes and VMs. 0 on the others, which have none")

// Families are all that Write may write.
func Families() []*exposition.Family {
	families := slices.Concat([]*exposition.Family{&reportsFamily}, memberFamilies, siteFamilies, vmFamilies, totalFamilies)
	families = append(families, &nodeInfo, &nodePressure)
	for i := range nodeFigures {
		families = append(families, &nodeFigures[i].family)
	}
	return families
}

func gauge(name, help string, labels ...string) exposition.Family {
	return exposition.Family{Name: name, Help: help, Type: exposition.Gauge, Labels: labels}
}

func counter(name, help string, labels ...string) exposition.Family {
	return exposition.Family{Name: name, Help: help, Type: exposition.Counter, Labels: labels}
}

func histogram(name, help string) exposition.Family {
	return exposition.Family{Name: name, Help: help, Type: exposition.Histogram}
}
