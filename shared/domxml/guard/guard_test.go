package guard

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"libvirt.org/go/libvirtxml"

	"berth/shared/domxml"
)

// known is a site with an image folder, a declared pool and a declared bridge, whose operators have no permission.
var known = Permitted{
	Folders: []string{"/var/lib/libvirt/images", "/srv/images"}, Pools: []string{"shared", "local"}, Bridges: []string{"br0"},
}

const harmlessDevices = `
    <emulator>/usr/bin/qemu-system-x86_64</emulator>
    <disk type='file' device='disk'>
      <driver name='qemu' type='qcow2' cache='none' discard='unmap'/>
      <source file='/srv/images/web.qcow2' index='2'/>
      <backingStore type='file' index='3'><format type='qcow2'/><source file='/srv/images/base.qcow2'/><backingStore/></backingStore>
      <target dev='vda' bus='virtio'/>
      <alias name='virtio-disk0'/>
      <address type='pci' domain='0x0000' bus='0x04' slot='0x00' function='0x0'/>
    </disk>
    <interface type='bridge'>
      <mac address='52:54:00:12:34:56'/>
      <source bridge='br0'/>
      <target dev='vnet3'/>
      <model type='virtio'/>
    </interface>
    <serial type='pty'><source path='/dev/pts/3'/><target type='isa-serial' port='0'/></serial>
    <channel type='unix'>
      <source mode='bind' path='/var/lib/libvirt/qemu/channel/target/domain-1-web/org.qemu.guest_agent.0'/>
      <target type='virtio' name='org.qemu.guest_agent.0' state='connected'/>
    </channel>
    <graphics type='vnc' port='5900' autoport='yes' listen='127.0.0.1'><listen type='address' address='127.0.0.1'/></graphics>
    <video><model type='virtio' heads='1' primary='yes'/></video>
    <memballoon model='virtio'><stats period='10'/></memballoon>
    <rng model='virtio'><backend model='random'>/dev/urandom</backend></rng>`

const harmless = `<domain type='kvm' id='4'>
  <name>web</name>
  <uuid>11111111-2222-4333-8444-555555555555</uuid>
  <metadata><libosinfo:libosinfo xmlns:libosinfo="http://libosinfo.org/xmlns/libvirt/domain/1.0"><libosinfo:os id="x"/></libosinfo:libosinfo></metadata>
  <memory unit='KiB'>1048576</memory>
  <vcpu placement='static'>2</vcpu>
  <resource><partition>/machine</partition></resource>
  <os>
    <type arch='x86_64' machine='pc-q35-7.2'>hvm</type>
    <loader readonly='yes' type='pflash'>/usr/share/OVMF/OVMF_CODE_4M.fd</loader>
    <nvram template='/usr/share/OVMF/OVMF_VARS_4M.fd'>/var/lib/libvirt/qemu/nvram/web_VARS.fd</nvram>
    <kernel>/srv/images/vmlinuz</kernel>
    <initrd>/srv/images/initrd</initrd>
  </os>
  <features><acpi/><apic/><vmport state='off'/></features>
  <cpu mode='host-model' check='partial'/>
  <clock offset='utc'><timer name='rtc' tickpolicy='catchup'/></clock>
  <on_poweroff>destroy</on_poweroff>
  <on_crash>destroy</on_crash>
  <devices>` + harmlessDevices + `
  </devices>
  <seclabel type='dynamic' model='dac' relabel='yes'><label>+64055:+64055</label></seclabel>
</domain>`

// hostile is a document and what it needs.
type hostile struct {
	name, document string
	needs          Permission
}

func changed(t *testing.T, old, becomes string) string {
	t.Helper()
	if strings.Count(harmless, old) != 1 {
		t.Fatalf("%q is %d times in the harmless document", old, strings.Count(harmless, old))
	}
	return strings.Replace(harmless, old, becomes, 1)
}

func hostiles(t *testing.T) (list []hostile) {
	device := func(needs Permission, elements ...string) {
		for _, one := range elements {
			list = append(list, hostile{one, changed(t, "</devices>", one+"</devices>"), needs})
		}
	}
	top := func(needs Permission, elements ...string) {
		for _, one := range elements {
			list = append(list, hostile{one, changed(t, "<devices>", one+"<devices>"), needs})
		}
	}
	becomes := func(needs Permission, old string, texts ...string) {
		for _, one := range texts {
			list = append(list, hostile{one, changed(t, old, one), needs})
		}
	}
	device(HostDevices,
		`<hostdev mode='subsystem' type='pci' managed='yes'><source><address domain='0' bus='1' slot='0' function='0'/></source></hostdev>`,
		`<hostdev mode='subsystem' type='usb'><source><vendor id='0x1'/><product id='0x2'/></source></hostdev>`,
		`<hostdev mode='subsystem' type='mdev' model='vfio-pci'/>`, `<hostdev mode='subsystem' type='scsi'/>`,
		`<hostdev mode='capabilities' type='storage'/>`,
		`<hostdev/>`, `<interface type='hostdev' managed='yes'/>`,
		`<interface type='vdpa'><source dev='/dev/vhost-vdpa-0'/></interface>`,
		`<disk type='nvme' device='disk'/>`, `<disk type='block' device='lun'/>`, `<disk type='block' rawio='yes'/>`,
		`<disk type='block' sgio='unfiltered'/>`,
		`<disk type='vhostvdpa'/>`, `<tpm model='tpm-tis'><backend type='passthrough'><device path='/dev/tpm0'/></backend></tpm>`,
		`<input type='evdev'><source dev='/dev/input/event0'/></input>`, `<input type='passthrough' bus='virtio'/>`,
		`<rng model='virtio'><backend model='random'>/dev/sda</backend></rng>`,
		`<rng model='virtio'><backend model='random'>/dev/hwrng</backend></rng>`,
		`<video><model type='virtio'><acceleration accel3d='yes'/></model></video>`, `<graphics type='egl-headless'/>`,
		`<graphics type='spice'><gl enable='yes' rendernode='/dev/dri/renderD128'/></graphics>`,
		`<audio id='1' type='alsa'/>`, `<audio id='1' type='file'/>`,
		`<smartcard mode='host'/>`, `<crypto model='virtio'/>`,
	)
	device(SharedFolders,
		`<filesystem type='mount'><source dir='/'/><target dir='host'/></filesystem>`,
		`<filesystem type='mount'><driver type='virtiofs'/></filesystem>`,
		`<filesystem/>`, `<shmem name='s'><model type='ivshmem-plain'/></shmem>`, `<shmem name='s'><server path='/tmp/x'/></shmem>`,
	)
	device(HostSockets,
		`<vsock model='virtio'><cid auto='yes'/></vsock>`,
		`<interface type='vhostuser'><source type='unix' path='/tmp/x' mode='server'/></interface>`,
		`<interface type='mcast'/>`, `<interface type='udp'/>`, `<interface type='server'/>`, `<interface type='client'/>`,
		`<disk type='network' device='disk'/>`, `<disk type='vhostuser'/>`,
		`<disk type='file'><source protocol='nbd' name='x'/></disk>`,
		`<disk type='file'><source><host name='10.0.0.1' port='1'/></source></disk>`,
		`<disk type='block'><source><reservations managed='yes'/></source></disk>`,
		`<graphics type='vnc' listen='0.0.0.0'/>`, `<graphics type='vnc'><listen type='address' address='0.0.0.0'/></graphics>`,
		`<graphics type='vnc'><listen type='address' address='::'/></graphics>`,
		`<graphics type='vnc'><listen type='network' network='default'/></graphics>`,
		`<graphics type='vnc' socket='/tmp/x'/>`, `<graphics type='sdl' display=':0'/>`, `<graphics type='rdp'/>`,
		`<graphics type='dbus'/>`,
		`<redirdev bus='usb' type='tcp'><source mode='connect' host='h' service='1'/></redirdev>`,
		`<rng model='virtio'><backend model='egd' type='tcp'/></rng>`, `<video><driver name='vhostuser'/></video>`,
		`<channel type='unix'><source mode='connect' path='/run/libvirt/libvirt-sock'/></channel>`,
		`<channel type='unix'><source mode='bind' path='/run/berth/agent.sock'/></channel>`,
		`<channel type='unix'><source mode='bind' path='/var/lib/libvirt/qemu/channel/../../x'/></channel>`,
		`<channel type='pty'><target type='guestfwd' address='10.0.0.1' port='1'/></channel>`,
	)
	for _, kind := range []string{"serial", "console", "parallel", "channel"} {
		for _, is := range []string{"unix", "tcp", "udp", "file", "pipe", "dev", "stdio", "vc", "nmdm", "dbus", "never-heard"} {
			if kind != "channel" || is != "unix" {
				device(HostSockets, fmt.Sprintf(`<%s type='%s'><target port='1'/></%s>`, kind, is, kind))
			}
		}
		device(HostPaths, fmt.Sprintf(`<%s type='pty'><log file='/etc/cron.d/x'/></%s>`, kind, kind))
		device(HostSockets, fmt.Sprintf(`<%s type='pty'><source path='/dev/sda'/></%s>`, kind, kind))
	}
	device(HostNetwork,
		`<interface type='ethernet'/>`, `<interface type='direct'><source dev='eth0' mode='bridge'/></interface>`,
		`<interface type='user'/>`,
		`<interface type='internal'/>`, `<interface type='vds'/>`, `<interface type='bridge'><source bridge='br1'/></interface>`,
		`<interface type='bridge'><source bridge=''/></interface>`,
		`<interface type='network'><source network='n' bridge='virbr0'/></interface>`,
		`<interface type='network'><vlan><tag id='7'/></vlan></interface>`, `<interface type='network' trustGuestRxFilters='yes'/>`,
		`<interface type='network'><target dev='eth0'/></interface>`, `<interface type='network' managed='no'/>`,
		`<interface type='network'><virtualport type='802.1Qbh'/></interface>`,
		`<interface type='network'><ip address='1.2.3.4'/></interface>`,
		`<interface type='network'><source network='n' dev='eth0'/></interface>`,
		`<interface type='user'><portForward proto='tcp'/></interface>`,
	)
	device(HostPrograms,
		`<interface type='ethernet'><script path='/tmp/x'/></interface>`,
		`<interface type='network'><downscript path='/tmp/x'/></interface>`,
		`<interface type='bridge'><script path='/bin/sh'/></interface>`,
		`<tpm model='tpm-crb'><backend type='emulator' version='2.0'/></tpm>`,
	)
	becomes(HostPrograms, "<emulator>/usr/bin/qemu-system-x86_64<", "<emulator>/tmp/x<", "<emulator>/bin/sh<",
		"<emulator>/usr/bin/../../tmp/x<",
		"<emulator>/usr/bin/qemu-system-x86_64 -x<", "<emulator>/usr/bin/qemu-system-x86_64&#10;<", "<emulator><",
		"<emulator>/usr/bin/qemu-kvm/../sh<")
	top(HostPrograms, `<bootloader>/tmp/x</bootloader>`, `<bootloader_args>x</bootloader_args>`)
	becomes(HostPrograms, "<kernel>", "<init>/bin/sh</init><kernel>")
	paths := []string{
		"/etc/shadow", "/etc/berth/ca.key", "/dev/sda", "/dev/mem", "/dev/vg/lv", "/proc/kcore", "/root/.ssh/id",
		"/var/lib/libvirt/images/../../x",
		"/var/lib/libvirt/images", "/var/lib/libvirt/images/", "/var/lib/libvirt/imagesx/a", "/srv/images/../x",
		"/srv/images//a", "/srv/images/./a",
		"/srv/images/a/..", "srv/images/a", "/srv/images/a&#10;b", "/srv/images/a\tb", " /srv/images/a",
		"/SRV/images/a", "/", "//srv/images/a",
		"nbd://10.0.0.1/x", "json:{}", "/srv/images/&#x202e;gpj", "fd:3", "/srv/images/a&#127;",
	}
	for _, path := range paths {
		becomes(HostPaths, "source file='/srv/images/web.qcow2'", "source file='"+path+"'", "source dev='"+path+"'")
		becomes(HostPaths, "source file='/srv/images/base.qcow2'", "source file='"+path+"'")
		becomes(HostPaths, "<kernel>/srv/images/vmlinuz<", "<kernel>"+path+"<")
		becomes(HostPaths, "<initrd>/srv/images/initrd<", "<initrd>"+path+"<")
		becomes(Firmware, ">/usr/share/OVMF/OVMF_CODE_4M.fd<", ">"+path+"<")
		becomes(Firmware, ">/var/lib/libvirt/qemu/nvram/web_VARS.fd<", ">"+path+"<")
		becomes(Firmware, "template='/usr/share/OVMF/OVMF_VARS_4M.fd'", "template='"+path+"'")
	}
	device(HostPaths,
		`<disk type='dir'><source dir='/etc'/></disk>`, `<disk type='volume'><source pool='other' volume='v'/></disk>`,
		`<disk type='volume'><source pool='shared' volume='../x'/></disk>`,
		`<disk type='volume'><source pool='shared' volume=''/></disk>`,
		`<disk type='file'><mirror type='file' file='/etc/x'/></disk>`,
		`<disk type='file'><mirror type='file'><source file='/etc/x'/></mirror></disk>`,
		`<interface type='network'><rom file='/etc/shadow'/></interface>`,
		`<pstore backend='acpi-erst'><path>/etc/x</path></pstore>`,
		`<memory model='nvdimm'><source><path>/dev/sda</path></source></memory>`, `<memory model='virtio-pmem'/>`,
		`<watchdog model='i6300esb' action='dump'/>`,
		`<lease><lockspace>x</lockspace></lease>`,
	)
	becomes(HostPaths, "<on_crash>destroy", "<on_crash>coredump-destroy", "<on_crash>coredump-restart")
	becomes(HostPaths, "<kernel>", "<dtb>/srv/images/x</dtb><kernel>")
	becomes(Firmware, "<kernel>", "<acpi><table type='slic'>/etc/x</table></acpi><kernel>")
	top(Firmware, `<sysinfo type='fwcfg'><entry name='opt/x' file='/etc/shadow'/></sysinfo>`)
	top(HostTuning, `<cputune><vcpusched vcpus='0' scheduler='fifo' priority='99'/></cputune>`, `<numatune/>`,
		`<blkiotune/>`, `<memtune/>`, `<perf/>`,
		`<memoryBacking><locked/></memoryBacking>`, `<memoryBacking><hugepages/></memoryBacking>`,
		`<memoryBacking><source type='file'/></memoryBacking>`, `<memoryBacking><access mode='shared'/></memoryBacking>`)
	becomes(HostTuning, "/machine<", "/<", "/system.slice<")
	becomes(HostTuning, "placement='static'", "placement='auto'", "cpuset='0'")
	becomes(Unconfined, "<seclabel type='dynamic'", "<seclabel type='none'", "<seclabel type='static'", "<seclabel type=''")
	becomes(Unconfined, "relabel='yes'", "relabel='no'")
	becomes(Unconfined, "<label>", "<baselabel>x</baselabel><label>")
	device(Unconfined, `<disk type='file'><source file='/srv/images/a'><seclabel model='dac' relabel='no'/></source></disk>`)
	qemu := strings.Replace(harmless, "<domain ", "<domain xmlns:q='"+qemuNamespace+"' ", 1)
	for _, one := range []string{
		`<q:commandline><q:arg value='-chardev'/></q:commandline>`, `<q:override/>`, `<q:capabilities/>`,
		`<q:deprecation behavior='crash'/>`, `<q:x/>`,
	} {
		list = append(list, hostile{one, strings.Replace(qemu, "<devices>", one+"<devices>", 1), QEMUCommandline})
	}
	top(QEMUCommandline, `<commandline xmlns='`+qemuNamespace+`'><arg value='x'/></commandline>`)
	top(UnknownElements, `<launchSecurity type='sev'/>`, `<keywrap/>`, `<never-heard/>`, `<x:y/>`, `<Devices/>`,
		`<devices xmlns='http://x'/>`,
		`<commandline><arg value='-x'/></commandline>`,
		`<xi:include xmlns:xi='http://www.w3.org/2001/XInclude' href='/etc/passwd'/>`)
	device(UnknownElements, `<never-heard/>`, `<disk type='file'><never-heard/></disk>`,
		`<disk type='file' never='heard'/>`, `<hostdev2/>`,
		`<disk type='file'><driver name='qemu' type='raw' never='heard'/></disk>`, `<disk type='file'><driver name='tap'/></disk>`,
		`<disk type='file'><encryption format='luks'/></disk>`, `<x:hostdev xmlns:x='http://x'/>`,
		`<disk x:type='file' xmlns:x='http://x'/>`,
		`<interface type='network'><mac address='x'/></interface>`, `<memballoon model='virtio'><stats period='x'/></memballoon>`)
	becomes(UnknownElements, "type='kvm'", "type='xen'", "type='lxc'", "type='bhyve'")
	list = append(list, hostile{"no domain", "<network/>", UnknownElements})
	return list
}

func TestWhatPutsSomethingOntoAHostNeedsItsPermission(t *testing.T) {
	if found, err := Judge(harmless, known); err != nil || len(found) > 0 {
		t.Fatalf("the harmless document: %v, %v", err, found)
	}
	list := hostiles(t)
	documents := map[string]bool{}
	for _, one := range list {
		documents[one.document] = true
		if one.name == "no domain" {
			continue // what is no domain is refused below
		}
		found, err := Judge(one.document, known)
		if err != nil {
			t.Errorf("%s: %v", one.name, err)
			continue
		}
		if !slices.Contains(Needs(found), one.needs) {
			t.Errorf("%s needs %v, and not %s", one.name, Needs(found), one.needs)
		}
		for _, finding := range found {
			if finding.Line < 1 || !strings.HasPrefix(finding.Path, "domain") || !strings.Contains(finding.Text(), string(finding.Permission)) {
				t.Errorf("%s: says %q", one.name, finding.Text())
			}
		}
		// Every permission but the one that it needs does not help, and those that it needs are all that it takes.
		others := known
		others.Permissions = slices.DeleteFunc(Permissions(), func(p Permission) bool { return p == one.needs })
		if found, _ := Judge(one.document, others); !slices.Equal(Needs(found), []Permission{one.needs}) {
			t.Errorf("%s with all others needs %v", one.name, Needs(found))
		}
		all := known
		all.Permissions = Needs(found)
		if found, _ := Judge(one.document, all); len(found) > 0 {
			t.Errorf("%s with all that it needs: %v", one.name, found)
		}
	}
	if len(documents) < 200 {
		t.Errorf("%d hostile documents, want 200", len(documents))
	}
	t.Logf("%d hostile documents", len(documents))
}

func TestWhatTwoParsersCouldReadInTwoWaysIsNoDocument(t *testing.T) {
	deep := strings.Repeat("<a>", 40) + strings.Repeat("</a>", 40)
	for name, text := range map[string]string{
		"empty":             "",
		"document type":     "<!DOCTYPE domain>" + harmless,
		"entities":          `<!DOCTYPE d [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>` + harmless,
		"external entity":   `<!DOCTYPE d [<!ENTITY x SYSTEM "file:///etc/passwd">]>` + harmless,
		"unknown entity":    changed(t, "<name>web", "<name>&x;"),
		"instruction":       changed(t, "<name>", "<?php x?><name>"),
		"stylesheet":        "<?xml-stylesheet href='x'?>" + harmless,
		"late declaration":  changed(t, "<name>", "<?xml version='1.0'?><name>"),
		"other encoding":    "<?xml version='1.0' encoding='UTF-7'?>" + harmless,
		"latin-1":           changed(t, "<name>web", "<name>w\xe4b"),
		"NUL":               changed(t, "<name>web", "<name>w\x00b"),
		"byte order mark":   "\ufeff" + harmless,
		"UTF-16":            "\xff\xfe<\x00d\x00",
		"CDATA":             changed(t, "<name>web<", "<name><![CDATA[web]]><"),
		"attribute twice":   changed(t, "<vcpu placement='static'", "<vcpu placement='static' placement='auto'"),
		"nesting":           changed(t, "<name>", deep+"<name>"),
		"size":              changed(t, "<name>", "<description>"+strings.Repeat("x", domxml.MaxBytes)+"</description><name>"),
		"many":              changed(t, "<name>", strings.Repeat("<a/>", 30_000)+"<name>"),
		"two domains":       harmless + harmless,
		"text behind":       harmless + "x",
		"text before":       "x" + harmless,
		"torn text":         changed(t, "<name>web", "<name>w<!-- -->eb"),
		"mixed":             changed(t, "<features>", "<features>x"),
		"two prefixes":      changed(t, "<features>", "<a:b:c/><features>"),
		"not closed":        strings.TrimSuffix(harmless, "</domain>"),
		"crossed":           changed(t, "<name>web</name>", "<name>web</nane>"),
		"no quotes":         changed(t, "unit='KiB'", "unit=KiB"),
		"control character": changed(t, "<name>web", "<name>w&#1;b"),
		"no domain":         "<network/>",
	} {
		if _, err := Judge(text, known); err == nil {
			t.Errorf("%s: it is read", name)
		}
	}
}

func TestWhatBerthRendersNeedsNothing(t *testing.T) {
	id := domxml.Identity{UUID: "11111111-2222-4333-8444-555555555555", Name: "web-1", Mark: domxml.Mark{Epoch: 7, Operation: "op", Node: "n"}}
	machines := []domxml.Machine{
		{DomainType: "kvm", Arch: "x86_64", Type: "pc"},
		{DomainType: "qemu", Arch: "x86_64", Type: "q35"},
		{DomainType: "kvm", Arch: "aarch64", Type: "virt"},
	}
	count := 0
	for _, machine := range machines {
		for _, firmware := range []string{"", "bios", "efi"} {
			for _, cpu := range []string{"", "Haswell-noTSX", "host-passthrough"} {
				for _, kernel := range []string{"", "/srv/images/vmlinuz"} {
					for _, bus := range []string{"virtio", "sata", "scsi"} {
						spec := domxml.Spec{
							MemoryBytes: 1 << 30, VCPUs: 2, MaxMemoryBytes: 2 << 30, MaxVCPUs: 4, Firmware: firmware, CPU: cpu, Kernel: kernel,
							Networks: []string{"default", "bridge:br0"},
							Disks: []domxml.Disk{
								{Path: "/srv/images/a.qcow2", Format: "qcow2", Bus: bus, Serial: "0abc"},
								{Pool: "shared", Volume: "berth-1.raw", Format: "raw", Bus: bus},
								{Path: "/var/lib/libvirt/images/s.iso", Format: "raw", Bus: bus, ReadOnly: true},
							},
						}
						if kernel != "" {
							spec.Initrd, spec.Cmdline = "/srv/images/initrd", `console=ttyS0 x="<1>"`
						}
						text, err := domxml.Render(spec, id, machine)
						if err != nil {
							continue // a machine without such a firmware or CPU
						}
						count++
						if found, err := Judge(text, known); err != nil || len(found) > 0 {
							t.Fatalf("%v %v\n%s", err, found, text)
						}
						devices, err := spec.Devices(id.UUID)
						if err != nil {
							t.Fatal(err)
						}
						for _, one := range devices {
							if found, err := JudgeDevices(one.XML, known); err != nil || len(found) > 0 {
								t.Fatalf("%v %v\n%s", err, found, one.XML)
							}
						}
					}
				}
			}
		}
	}
	if count < 50 {
		t.Errorf("%d documents, want 50", count)
	}
}

// What virt-install writes, and what libvirt 9 and 10 show of guests that run.
func TestOrdinaryGuestsNeedNothing(t *testing.T) {
	files, err := filepath.Glob("testdata/harmless/*.xml")
	if err != nil || len(files) < 3 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	more, err := filepath.Glob("../testdata/*.xml")
	if err != nil {
		t.Fatal(err)
	}
	site := known
	site.Folders = append(slices.Clone(known.Folders), "/srv", "/dev/vg0", "/dev/vg")
	for _, file := range append(files, more...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "<domain") || strings.Contains(file, "capabilities") {
			continue
		}
		document := strings.ReplaceAll(string(text), ">/boot/", ">/srv/") // which is the host's own
		if found, err := Judge(document, site); err != nil || len(found) > 0 {
			t.Errorf("%s: %v %v", file, err, found)
		}
	}
}

func TestPermissionsAreReadAndWritten(t *testing.T) {
	for _, one := range Permissions() {
		if got, bad := Split(string(one)); bad != "" || len(got) != 1 || one.Doc() == "" {
			t.Errorf("%s: %v %q", one, got, bad)
		}
	}
	if got, bad := Split("host-paths, host-devices,host-paths"); bad != "" || Join(got) != "host-devices,host-paths" {
		t.Errorf("%v %q", got, bad)
	}
	if got, bad := Split(All); bad != "" || len(got) != len(Permissions()) {
		t.Errorf("%v %q", got, bad)
	}
	if got, bad := Split(None); bad != "" || len(got) != 0 {
		t.Errorf("%v %q", got, bad)
	}
	for _, list := range []string{"", "everything", "host-paths,", "none,host-paths"} {
		if _, bad := Split(list); bad == "" && list != "" && list != "host-paths," {
			t.Errorf("%q is read", list)
		}
	}
}

func FuzzJudge(f *testing.F) {
	f.Add(harmless)
	f.Add("<domain type='kvm'><devices>" + harmlessDevices + "</devices></domain>")
	f.Add("<?xml version='1.0'?>" + harmless)
	f.Fuzz(func(t *testing.T, text string) {
		found, err := Judge(text, known)
		if err != nil {
			return
		}
		// What is judged is what is written anew of what was read: nothing was read in two ways.
		root, err := domxml.Read(text)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Judge(root.String(), known)
		if err != nil || len(again) != len(found) {
			t.Fatalf("%v: %v became %v in\n%s", err, found, again, root)
		}
		for i := range found {
			if !found[i].Same(&again[i]) {
				t.Fatalf("%v became %v", found[i], again[i])
			}
		}
		if twice, err := domxml.Read(root.String()); err != nil || twice.String() != root.String() {
			t.Fatalf("%v: written anew it is another\n%s", err, root)
		}
		if len(found) > 0 {
			return
		}
		// libvirt's own model of what was let through is that of what was judged.
		var first, second libvirtxml.Domain
		if first.Unmarshal(text) != nil {
			return
		}
		if err := second.Unmarshal(root.String()); err != nil {
			t.Fatal(err)
		}
		first.Metadata, second.Metadata = nil, nil
		a, _ := first.Marshal()
		if b, _ := second.Marshal(); a != b {
			t.Fatalf("it is\n%s\nand was judged as\n%s", a, b)
		}
	})
}
