package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"berth/agent/hypervisor"
	"berth/agent/session"
	"berth/agent/telemetry"
	"berth/integration/bench/report"
	berthv1 "berth/shared/gen/berth/v1"
)

// How often the agent does what A5 counts, in samples: it takes one every ten seconds, lists everything every half a minute, and reads each
// guest's document anew every five minutes.
const (
	samplesAListing = 3
	samplesAReading = 30
)

// liveXML is a running guest's document as libvirt gives it, with two disks, two interfaces and what every guest has beside them.
func liveXML(number int) string {
	var controllers strings.Builder
	for i := range 14 {
		fmt.Fprintf(&controllers, `<controller type='pci' index='%d' model='pcie-root-port'><model name='pcie-root-port'/>`+
			`<target chassis='%d' port='0x%x'/><alias name='pci.%d'/><address type='pci' domain='0x0000' bus='0x00' slot='0x02' function='0x%x'/>`+
			`</controller>`, i+1, i+1, 16+i, i+1, i%8)
	}
	disk := func(target string, at int) string {
		return fmt.Sprintf(`<disk type='file' device='disk'><driver name='qemu' type='qcow2' cache='none' io='native' discard='unmap'/>`+
			`<source file='/srv/images/guest-%d-%s.qcow2' index='%d'/><backingStore type='file' index='%d'><format type='qcow2'/>`+
			`<source file='/srv/images/debian-12.qcow2'/><backingStore/></backingStore><target dev='%s' bus='virtio'/>`+
			`<alias name='virtio-disk%d'/><address type='pci' domain='0x0000' bus='0x04' slot='0x00' function='0x0'/></disk>`,
			number, target, at, at+1, target, at)
	}
	nic := func(at int) string {
		return fmt.Sprintf(`<interface type='bridge'><mac address='52:54:00:%02x:%02x:%02x'/><source network='default' bridge='virbr0'/>`+
			`<target dev='vnet%d'/><model type='virtio'/><alias name='net%d'/>`+
			`<address type='pci' domain='0x0000' bus='0x01' slot='0x00' function='0x0'/></interface>`, number/256, number%256, at, number*2+at, at)
	}
	return fmt.Sprintf(`<domain type='kvm' id='%d'><name>guest-%d</name><uuid>00000000-0000-4000-8000-%012d</uuid>`+
		`<memory unit='KiB'>2097152</memory><currentMemory unit='KiB'>2097152</currentMemory><vcpu placement='static'>2</vcpu>`+
		`<os><type arch='x86_64' machine='pc-q35-7.2'>hvm</type><boot dev='hd'/></os><features><acpi/><apic/></features>`+
		`<cpu mode='custom' match='exact' check='full'><model fallback='forbid'>Haswell-noTSX-IBRS</model>`+
		`<feature policy='require' name='vme'/><feature policy='require' name='ss'/><feature policy='require' name='hypervisor'/></cpu>`+
		`<devices><emulator>/usr/bin/qemu-system-x86_64</emulator>%s%s%s%s%s`+
		`<serial type='pty'><source path='/dev/pts/1'/><target type='isa-serial' port='0'><model name='isa-serial'/></target></serial>`+
		`<hostdev mode='subsystem' type='usb' managed='yes'><source><address bus='1' device='4'/></source></hostdev>`+
		`<memballoon model='virtio'><stats period='5'/></memballoon></devices></domain>`,
		number+1, number, number, disk("vda", 1), disk("vdb", 3), controllers.String(), nic(0), nic(1))
}

// measureDevices is A5: what the agent spends on telling of guests' devices, and of what keeps them where they are.
func measureDevices(_ context.Context, b *bench) ([]report.Row, error) {
	domains := make([]hypervisor.Domain, fullHost)
	texts := make([]string, fullHost)
	var known hypervisor.Documents
	for i := range domains {
		texts[i] = liveXML(i)
		attached, err := known.AttachedIn(texts[i])
		if err != nil {
			return nil, err
		}
		domains[i] = hypervisor.Domain{
			UUID: fmt.Sprintf("00000000-0000-4000-8000-%012d", i), Name: fmt.Sprintf("guest-%d", i), State: hypervisor.Running, Managed: true,
			MemoryBytes: 2 << 30, VCPUs: 2, Sources: attached.Written, Devices: attached.Devices, Bindings: attached.Bindings,
		}
	}
	listing := func(devices bool) time.Duration {
		begun := time.Now()
		told := &berthv1.InventoryReport{Node: &berthv1.NodeInventory{}}
		for _, domain := range domains {
			if !devices {
				domain.Devices, domain.Bindings = nil, nil
			}
			told.Domains = append(told.Domains, telemetry.Domain(domain))
		}
		told.Digest = session.DigestOf(told)
		return time.Since(begun)
	}
	reading := func(read func(string) (hypervisor.Attached, error)) (time.Duration, error) {
		begun := time.Now()
		for _, text := range texts {
			if _, err := read(text); err != nil {
				return 0, err
			}
		}
		return time.Since(begun), nil
	}
	var with, without, unread report.Figures
	for range b.rounds(5, 25) {
		bare, whole := listing(false), listing(true)
		again, err := reading(known.AttachedIn)
		if err != nil {
			return nil, err
		}
		anew, err := reading(hypervisor.AttachedIn)
		if err != nil {
			return nil, err
		}
		without.Add(bare / samplesAListing)
		with.Add(whole/samplesAListing + again/samplesAReading)
		unread.Add(whole/samplesAListing + anew/samplesAReading)
	}
	more := with.Less(without)
	return []report.Row{{
		Goal: "A5",
		What: fmt.Sprintf("CPU a sample that devices and bindings of %d guests add in the agent", fullHost),
		Measured: fmt.Sprintf("%s; with them %s\nif each document were read anew: %s", more.Spread(report.Seconds), with.Spread(report.Seconds),
			unread.Less(without).Spread(report.Seconds)),
		Against: "the report without them: " + without.Spread(report.Seconds),
		Wanted:  "<= 1 ms", Verdict: report.Judge(more.Median(), 0.001),
	}}, nil
}
