package admin

import (
	"context"
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	berthv1 "berth/shared/gen/berth/v1"
)

// domain is what is of interest of a domain's XML.
type domain struct {
	VCPU struct {
		Current int `xml:"current,attr"`
		Most    int `xml:",chardata"`
	} `xml:"vcpu"`
	Disks []struct {
		Source struct {
			File string `xml:"file,attr"`
		} `xml:"source"`
		Target struct {
			Dev string `xml:"dev,attr"`
		} `xml:"target"`
	} `xml:"devices>disk"`
	NICs []struct {
		MAC struct {
			Address string `xml:"address,attr"`
		} `xml:"mac"`
	} `xml:"devices>interface"`
}

// see looks at the guest on all hosts, and at what Berth shows of it.
func (p *play) see(ctx context.Context) (look, error) {
	l := look{disks: map[string]string{}, recorded: map[string]string{}, adopted: p.script.adopted}
	host, err := p.lab.HostOf(p.name)
	if err == nil {
		l.host = host.Name
	}
	texts := make([]string, len(p.lab.Hosts))
	all, together := errgroup.WithContext(ctx)
	for i, h := range p.lab.Hosts {
		all.Go(func() (err error) {
			const script = `virsh -q list --all --name | grep -qx "$0" || exit 0; virsh -q "domblkinfo $0 vda; dominfo $0; dumpxml $0"`
			texts[i], err = h.Exec(together, "sh", "-c", script, p.name)
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return l, err
	}
	for i, h := range p.lab.Hosts {
		if err := l.read(h.Name, texts[i]); err != nil {
			return l, fmt.Errorf("%s on %s: %w", p.name, h.Name, err)
		}
	}
	var answer berthv1.GetVMResponse
	if err := p.lab.Ask(ctx, &answer, "vm", "show", p.name); err != nil {
		return l, err
	}
	vm := answer.GetVm()
	l.shown = shown{
		state: strings.TrimPrefix(vm.GetState().String(), "VM_STATE_"), node: vm.GetNode(), condition: vm.GetCondition(),
		vcpus: int(vm.GetRunning().GetVcpus()),
	}
	l.busy = vm.GetOperationId() != ""
	var record domain
	if err := xml.Unmarshal([]byte(vm.GetSpec().GetXml()), &record); err != nil {
		return l, fmt.Errorf("the record of %s: %w", p.name, err)
	}
	for _, disk := range record.Disks {
		l.recorded[disk.Target.Dev] = disk.Source.File
	}
	for _, nic := range record.NICs {
		l.recordedNICs = append(l.recordedNICs, nic.MAC.Address)
	}
	l.shown.text, err = p.lab.Berth(ctx, "vm", "show", p.name)
	return l, err
}

// read takes in what libvirt on one host says of the guest.
func (l *look) read(host, text string) error {
	facts, document, found := strings.Cut(text, "<domain")
	if !found {
		return nil // it does not know it
	}
	said := map[string]string{}
	for line := range strings.Lines(facts) {
		name, value, _ := strings.Cut(line, ":")
		said[name] = strings.TrimSpace(value)
	}
	if said["Persistent"] == "yes" {
		l.defined = append(l.defined, host)
	}
	if said["Autostart"] == "enable" {
		l.autostart = append(l.autostart, host)
	}
	if said["Managed save"] == "yes" {
		l.saved = append(l.saved, host)
	}
	switch {
	case l.host != "" || said["State"] == "shut off":
	case said["State"] == "running": // two hosts have a process of it, and the other one's stands still
		l.host = host
	default:
		l.left = append(l.left, host)
	}
	if l.host != host {
		return nil
	}
	l.paused = said["State"] == "paused"
	var d domain
	if err := xml.Unmarshal([]byte("<domain"+document), &d); err != nil {
		return err
	}
	if l.vcpus, l.most = d.VCPU.Current, d.VCPU.Most; l.vcpus == 0 {
		l.vcpus = l.most
	}
	l.size, _ = strconv.ParseInt(said["Capacity"], 10, 64) // 0: it does not tell
	for _, disk := range d.Disks {
		l.disks[disk.Target.Dev] = disk.Source.File
	}
	for _, nic := range d.NICs {
		l.nics = append(l.nics, nic.MAC.Address)
	}
	return nil
}
