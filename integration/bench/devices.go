package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/agent/hypervisor"
	"berth/agent/hypervisor/disksizes"
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

// asksASample is how many guests are asked in the time of a sample how large their disks are: each of them every so often.
const asksASample = float64(fullHost) * 10 / float64(disksizes.Fresh/time.Second)

// spent is the CPU time that this process has had.
func spent() (time.Duration, error) {
	var used unix.Rusage
	err := unix.Getrusage(unix.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()), err
}

// spends is what a piece of work spends.
func spends(work func() error) (time.Duration, error) {
	before, err := spent()
	if err == nil {
		err = work()
	}
	if err != nil {
		return 0, err
	}
	after, err := spent()
	return after - before, err
}

// fullInventory is what the agent of a full host knows of its guests.
type fullInventory struct {
	texts   []string
	domains []hypervisor.Domain
	known   hypervisor.Documents
	sizes   disksizes.Kept
}

func newFullInventory() (*fullInventory, error) {
	f := &fullInventory{texts: make([]string, fullHost), domains: make([]hypervisor.Domain, fullHost)}
	for i := range f.domains {
		f.texts[i] = liveXML(i)
		attached, err := f.known.AttachedIn(f.texts[i])
		if err != nil {
			return nil, err
		}
		f.domains[i] = hypervisor.Domain{
			UUID: fmt.Sprintf("00000000-0000-4000-8000-%012d", i), Name: fmt.Sprintf("guest-%d", i), State: hypervisor.Running, Managed: true,
			MemoryBytes: 2 << 30, VCPUs: 2, Sources: attached.Written, Devices: attached.Devices, Bindings: attached.Bindings,
		}
	}
	f.sizes.Take(f.domains)
	return f, f.ask(fullHost, time.Now())
}

// ask has so many guests tell how large their disks are, but for libvirt's part.
func (f *fullInventory) ask(guests int, now time.Time) error {
	for range guests {
		one, due := f.sizes.Due(now)
		if !due {
			return errors.New("no guest is to be asked how large its disks are")
		}
		told := make(map[string]int64, len(one.Disks))
		for _, target := range one.Disks {
			told[target] = 20 << 30
		}
		f.sizes.Told(one.UUID, told)
	}
	return nil
}

// list makes the report of all guests, with or without their devices, and those with or without their sizes.
func (f *fullInventory) list(devices, sizes bool) *berthv1.InventoryReport {
	domains := slices.Clone(f.domains)
	if sizes {
		f.sizes.Take(domains)
	}
	told := &berthv1.InventoryReport{Node: &berthv1.NodeInventory{}}
	for _, domain := range domains {
		if !devices {
			domain.Devices, domain.Bindings = nil, nil
		}
		told.Domains = append(told.Domains, telemetry.Domain(domain))
	}
	told.Digest = session.DigestOf(told)
	return told
}

// listing is what that spends.
func (f *fullInventory) listing(devices, sizes bool) (time.Duration, error) {
	return spends(func() error { f.list(devices, sizes); return nil })
}

func (f *fullInventory) reading(read func(string) (hypervisor.Attached, error)) (time.Duration, error) {
	return spends(func() error {
		for _, text := range f.texts {
			if _, err := read(text); err != nil {
				return err
			}
		}
		return nil
	})
}

// measureDevices is A5: what the agent spends on telling of guests' devices, how large their disks are, and what keeps them where they
// are.
func measureDevices(_ context.Context, b *bench) ([]report.Row, error) {
	f, err := newFullInventory()
	if err != nil {
		return nil, err
	}
	var with, without, unread, unsized, asked report.Figures
	for round := range b.rounds(5, 25) {
		bare, err := f.listing(false, false)
		plain, plainErr := f.listing(true, false)
		whole, wholeErr := f.listing(true, true)
		again, againErr := f.reading(f.known.AttachedIn)
		anew, anewErr := f.reading(hypervisor.AttachedIn)
		asking, askErr := spends(func() error { return f.ask(fullHost, time.Now().Add(time.Duration(round+1)*disksizes.Fresh)) })
		if err := errors.Join(err, plainErr, wholeErr, againErr, anewErr, askErr); err != nil {
			return nil, err
		}
		share := time.Duration(float64(asking) * asksASample / fullHost)
		asked.Add(share)
		without.Add(bare / samplesAListing)
		unsized.Add(plain/samplesAListing + again/samplesAReading)
		with.Add(whole/samplesAListing + again/samplesAReading + share)
		unread.Add(whole/samplesAListing + anew/samplesAReading + share)
	}
	before := f.list(true, true)
	still := f.list(true, true)
	if !bytes.Equal(before.GetDigest(), still.GetDigest()) {
		return nil, errors.New("nothing has changed, and the report has another digest")
	}
	digest := &berthv1.SessionRequest{Message: &berthv1.SessionRequest_InventoryDigest{InventoryDigest: &berthv1.InventoryDigest{
		Digest: still.GetDigest(), CollectedAt: timestamppb.Now(),
	}}}
	more, sized := with.Less(without), with.Less(unsized)
	return []report.Row{{
		Goal: "A5",
		What: fmt.Sprintf("CPU a sample that devices, sizes of disks and bindings of %d guests add in the agent", fullHost),
		Measured: fmt.Sprintf("%s; with them %s\nof that sizes of disks: %s; %s guests asked a sample: %s\nif each document were read anew: %s",
			more.Spread(report.Seconds), with.Spread(report.Seconds), sized.Spread(report.Seconds), report.Digits(asksASample),
			asked.Spread(report.Seconds), unread.Less(without).Spread(report.Seconds)),
		Against: "the report without them: " + without.Spread(report.Seconds),
		Wanted:  "<= 1 ms", Verdict: report.Judge(more.Median(), 0.001),
	}, {
		Goal: "A5", What: fmt.Sprintf("what the agent says of its %d guests at a listing when nothing has changed", fullHost),
		Measured: fmt.Sprintf("%d bytes: a digest", proto.Size(digest)),
		Against:  fmt.Sprintf("the whole: %d bytes", proto.Size(still)),
		Wanted:   "nothing of the guests", Verdict: report.Judge(float64(proto.Size(digest)), 100),
	}}, nil
}
