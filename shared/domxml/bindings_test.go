package domxml

import (
	"slices"
	"testing"
)

// Each device is as 'virsh dumpxml' shows it of a domain that runs.
func TestWhatKeepsADomainOnItsHost(t *testing.T) {
	binding := func(kind BindingKind, what, name string) []Binding {
		return []Binding{{Kind: kind, What: what, Name: name}}
	}
	drive := func(attributes, source string) string {
		return "<disk type='file' device='cdrom'><driver name='qemu' type='raw'/><source " + source + attributes + " index='1'/>" +
			"<backingStore/><target dev='sda' bus='sata'/><readonly/><alias name='sata0-0-0'/></disk>"
	}
	for _, tc := range []struct {
		name, device string
		want         []Binding
	}{
		{"nothing but disks and interfaces", `<disk type='file' device='disk'><driver name='qemu' type='qcow2' cache='writeback'/>
<source file='/srv/a.qcow2' index='1'/><backingStore/><target dev='vda' bus='virtio'/></disk>
<interface type='bridge'><mac address='52:54:00:00:00:01'/><source bridge='br0'/><model type='virtio'/></interface>
<interface type='vhostuser'><mac address='52:54:00:00:00:02'/><source type='unix' path='/run/vhost' mode='server'/></interface>
<tpm model='tpm-crb'><backend type='emulator' version='2.0'/></tpm>
<video><model type='virtio' heads='1' primary='yes'/></video>`, nil},
		{
			"a PCI device", `<hostdev mode='subsystem' type='pci' managed='yes'><driver name='vfio'/><source>
<address domain='0x0000' bus='0x01' slot='0x00' function='0x1'/></source><alias name='hostdev0'/></hostdev>`,
			binding(HostDeviceBinding, "pci", "0000:01:00.1"),
		},
		{"a PCI device that is unplugged on the way", `<hostdev mode='subsystem' type='pci' managed='yes'><source>
<address domain='0x0000' bus='0x01' slot='0x00' function='0x1'/></source><teaming type='transient' persistent='ua-net0'/></hostdev>`, nil},
		{
			"a virtual function", `<interface type='hostdev' managed='yes'><mac address='52:54:00:AA:bb:01'/><source>
<address type='pci' domain='0x0000' bus='0x03' slot='0x10' function='0x0'/></source></interface>`,
			binding(HostDeviceBinding, "interface", "52:54:00:aa:bb:01"),
		},
		{"a virtual function with a partner", `<interface type='hostdev' managed='yes'><mac address='52:54:00:aa:bb:01'/><source>
<address type='pci' domain='0x0000' bus='0x03' slot='0x10' function='0x0'/></source>
<teaming type='transient' persistent='ua-net0'/></interface>`, nil},
		{
			"vDPA", `<interface type='vdpa'><mac address='52:54:00:aa:bb:02'/><source dev='/dev/vhost-vdpa-0'/></interface>`,
			binding(HostDeviceBinding, "vdpa", "52:54:00:aa:bb:02"),
		},
		{"a USB device", `<hostdev mode='subsystem' type='usb' managed='no'><source><vendor id='0x1234'/><product id='0xbeef'/>
<address bus='1' device='4'/></source></hostdev>`, binding(HostDeviceBinding, "usb", "1234:beef")},
		{
			"a USB device by its place", `<hostdev mode='subsystem' type='usb'><source><address bus='1' device='4'/></source></hostdev>`,
			binding(HostDeviceBinding, "usb", "bus 1 device 4"),
		},
		{"a USB device that may be missing", `<hostdev mode='subsystem' type='usb'><source startupPolicy='optional'>
<vendor id='0x1234'/><product id='0xbeef'/></source></hostdev>`, nil},
		{
			"a mediated device", `<hostdev mode='subsystem' type='mdev' model='vfio-pci'><source>
<address uuid='c2177883-f1bb-47f0-914d-32a22e3a8804'/></source></hostdev>`,
			binding(HostDeviceBinding, "mdev", "c2177883-f1bb-47f0-914d-32a22e3a8804"),
		},
		{"a SCSI device", `<hostdev mode='subsystem' type='scsi'><source><adapter name='scsi_host0'/>
<address bus='0' target='0' unit='0'/></source></hostdev>`, binding(HostDeviceBinding, "scsi", "scsi_host0")},
		{"a SCSI device over the network", `<hostdev mode='subsystem' type='scsi'><source protocol='iscsi'
name='iqn.2014-08.com.example:iscsi/1'><host name='example.com' port='3260'/></source></hostdev>`, nil},
		{
			"a SCSI adapter", `<hostdev mode='subsystem' type='scsi_host'><source protocol='vhost' wwpn='naa.5123456789abcde0'/></hostdev>`,
			binding(HostDeviceBinding, "scsi_host", "naa.5123456789abcde0"),
		},
		{
			"an NVMe disk", `<disk type='nvme' device='disk'><driver name='qemu' type='raw'/><source type='pci' managed='yes' namespace='1'>
<address domain='0x0000' bus='0x01' slot='0x00' function='0x0'/></source><target dev='vde' bus='virtio'/></disk>`,
			binding(HostDeviceBinding, "nvme", "vde"),
		},
		{
			"a TPM of the host", `<tpm model='tpm-tis'><backend type='passthrough'><device path='/dev/tpm0'/></backend></tpm>`,
			binding(HostDeviceBinding, "tpm", "/dev/tpm0"),
		},
		{"virtiofs", `<filesystem type='mount' accessmode='passthrough'><driver type='virtiofs' queue='1024'/><source dir='/srv/share'/>
<target dir='share0'/><alias name='fs0'/></filesystem>`, binding(FilesystemBinding, "virtiofs", "share0")},
		{
			"9p", `<filesystem type='mount' accessmode='mapped'><source dir='/srv/share'/><target dir='share1'/></filesystem>`,
			binding(FilesystemBinding, "9p", "share1"),
		},
		{
			"ivshmem", `<shmem name='shm0' role='peer'><model type='ivshmem-plain'/><size unit='M'>4</size></shmem>`,
			binding(SharedMemoryBinding, "ivshmem", "shm0"),
		},
		{
			"ivshmem without a role", `<shmem name='shm0'><model type='ivshmem-plain'/></shmem>`,
			binding(SharedMemoryBinding, "ivshmem", "shm0"),
		},
		{"ivshmem that goes along", `<shmem name='shm0' role='master'><model type='ivshmem-plain'/><size unit='M'>4</size></shmem>`, nil},
		{
			"a transient disk", `<disk type='file' device='disk'><source file='/srv/b.qcow2'/><target dev='vdb'/><transient/></disk>`,
			binding(TransientBinding, "disk", "vdb"),
		},
		{
			"3D", `<video><model type='virtio' heads='1'><acceleration accel3d='yes'/></model></video>`,
			binding(GraphicsBinding, "3d", "virtio"),
		},
		{
			"a display of another program", `<video><driver name='vhostuser'/><model type='virtio'/></video>`,
			binding(GraphicsBinding, "vhost-user", "virtio"),
		},
		{
			"an ISO", drive("", "file='/srv/x.iso'"),
			[]Binding{{Kind: MediaBinding, What: "cdrom", Name: "sda", Source: Source{Path: "/srv/x.iso"}}},
		},
		{"an ISO that may be missing", drive(" startupPolicy='requisite'", "file='/srv/x.iso'"), nil},
		{"an empty drive", `<disk type='file' device='cdrom'><target dev='sda' bus='sata'/><readonly/></disk>`, nil},
		{
			"a volume in a drive", `<disk type='volume' device='cdrom'><source pool='isos' volume='x.iso' index='1'/>
<target dev='sda'/><readonly/></disk>`,
			[]Binding{{Kind: MediaBinding, What: "cdrom", Name: "sda", Source: Source{Pool: "isos", Volume: "x.iso"}}},
		},
	} {
		got, err := Bindings("<domain type='kvm' id='3'><name>web</name><devices>" + tc.device + "</devices></domain>")
		if err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("%s: %+v, want %+v: %v", tc.name, got, tc.want, err)
		}
	}
	const cpu = "<domain><cpu mode='custom'><model>EPYC</model><feature policy='require' name='invtsc'/></cpu><clock offset='utc'>"
	for timers, want := range map[string]int{
		"": 1, "<timer name='tsc' frequency='2400000000'/>": 0, "<timer name='rtc' tickpolicy='catchup'/>": 1,
	} {
		text := cpu + timers + "</clock></domain>"
		if got, err := Bindings(text); err != nil || len(got) != want {
			t.Errorf("invtsc with timers %q: %+v, %v", timers, got, err)
		}
	}
	if _, err := Bindings("<domain"); err == nil {
		t.Error("it reads what is no document")
	}
}
