package domxml

import (
	"errors"
	"strings"
	"testing"
)

const drifted = `<domain type='kvm'>
  <name>web</name>
  <devices>
    <emulator>/usr/bin/qemu-system-x86_64</emulator>
    <disk type='file' device='disk'>
      <driver name='qemu' type='qcow2' cache='none'/>
      <source file='/srv/web.snap' index='3'/>
      <backingStore type='file' index='1'><format type='qcow2'/><source file='/srv/web.qcow2'/><backingStore/></backingStore>
      <target dev='vda' bus='virtio'/>
      <serial>s1</serial>
      <alias name='virtio-disk0'/>
      <address type='pci' domain='0x0000' bus='0x04' slot='0x00' function='0x0'/>
    </disk>
    <disk type='volume' device='disk'>
      <source pool='fast' volume='data'/>
      <target dev='vdb' bus='virtio'/>
    </disk>
    <disk type='file' device='cdrom'><target dev='sda' bus='sata'/><readonly/></disk>
    <interface type='network'>
      <mac address='52:54:00:AA:BB:CC'/>
      <source network='default' portid='c0ffee' bridge='virbr0'/>
      <target dev='vnet7'/>
      <model type='virtio'/>
    </interface>
    <disk type='network'><source protocol='rbd' name='vms/logs'><host name='mon1'/></source><target dev='vdc'/></disk>
    <interface type='bridge'><mac address='52:54:00:00:00:02'/><source bridge='br1'/></interface>
    <interface type='bridge'><mac address='52:54:00:00:00:03'/><source network='lan' portid='c0ffee' bridge='br0'/><script path='/x'/></interface>
    <interface type='direct'><mac address='52:54:00:00:00:04'/><source network='fast' dev='eth0' mode='bridge'/></interface>
    <console type='pty'/>
  </devices>
</domain>`

func TestDevicesAreReadAsTheyCanBeStartedWith(t *testing.T) {
	devices, err := Devices(drifted)
	if err != nil {
		t.Fatal(err)
	}
	var shown []string
	for _, one := range devices {
		shown = append(shown, strings.Join([]string{
			string(one.Kind), one.Key, one.Source.Path, one.Source.Pool, one.Source.Volume, one.Format, one.Network,
		}, "|"))
		for _, runtime := range []string{"alias", "backingStore", "index", "vnet", "portid", "address type", "script", "br0", "eth0"} {
			if strings.Contains(one.XML, runtime) {
				t.Errorf("%s %s keeps %s: %s", one.Kind, one.Key, runtime, one.XML)
			}
		}
	}
	const want = `disk|vda|/srv/web.snap|||qcow2|
disk|vdb||fast|data||
disk|sda|||||
disk|vdc|||||rbd:vms/logs
interface|52:54:00:aa:bb:cc|||||default
interface|52:54:00:00:00:02|||||bridge:br1
interface|52:54:00:00:00:03|||||lan
interface|52:54:00:00:00:04|||||fast`
	if got := strings.Join(shown, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if !devices[2].Media || devices[0].Media {
		t.Error("a drive is not told from a disk")
	}
	if !strings.Contains(devices[0].XML, "<serial>s1</serial>") || !strings.Contains(devices[0].XML, `cache="none"`) {
		t.Errorf("what the disk is made of is lost: %s", devices[0].XML)
	}
}

// What is written into a document is read from it again, and nothing else has changed.
func TestEditDevices(t *testing.T) {
	const vdc = `<disk type="file" device="disk"><source file="/srv/more"></source><target dev="vdc" bus="virtio"></target></disk>`
	const vda = `<disk type="file" device="disk"><source file="/srv/other"></source><target dev="vda"></target></disk>`
	text, err := EditDevices(drifted, []DeviceEdit{
		{Kind: DiskDevice, Key: "vda", XML: vda},
		{Kind: DiskDevice, Key: "vdb"},
		{Kind: DiskDevice, Key: "vdc", XML: vdc},
		{Kind: DiskDevice, Key: "vdz"},
		{Kind: InterfaceDevice, Key: "52:54:00:aa:bb:cc"},
	})
	if err != nil {
		t.Fatal(err)
	}
	devices, err := Devices(text)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, one := range devices {
		keys = append(keys, one.Key+"="+one.Source.Path)
	}
	if got := strings.Join(keys, " "); got != "vda=/srv/other sda= vdc=/srv/more 52:54:00:00:00:02= 52:54:00:00:00:03= 52:54:00:00:00:04=" {
		t.Errorf("it has %s", got)
	}
	for _, kept := range []string{"<emulator>/usr/bin/qemu-system-x86_64</emulator>", "<console type='pty'/>", "<name>web</name>"} {
		if !strings.Contains(text, kept) {
			t.Errorf("%s is lost:\n%s", kept, text)
		}
	}
	if same, err := EditDevices(drifted, nil); same != drifted || err != nil {
		t.Errorf("no edit changes something: %v", err)
	}
}

// The element may come from another node: what is not that one device is refused.
func TestEditDevicesRefuses(t *testing.T) {
	for name, change := range map[string]DeviceEdit{
		"two devices":   {DiskDevice, "vda", `<disk><target dev="vda"/></disk><disk><target dev="vdb"/></disk>`},
		"another key":   {DiskDevice, "vda", `<disk><target dev="vdb"/></disk>`},
		"another kind":  {DiskDevice, "vda", `<interface type="bridge"><mac address="vda"/></interface>`},
		"no device":     {DiskDevice, "vda", `<hostdev/>`},
		"one that ends": {DiskDevice, "vda", `</devices></domain><domain><devices><disk><target dev="vda"/></disk>`},
		"too long":      {DiskDevice, "vda", `<disk><target dev="vda"/></disk>` + strings.Repeat(" ", MaxDevice)},
	} {
		if _, err := EditDevices(drifted, []DeviceEdit{change}); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Nothing else that comes with the element gets into the document.
func TestEditDevicesTakesOneDevice(t *testing.T) {
	text, err := EditDevices(drifted, []DeviceEdit{
		{DiskDevice, "vdc", `<disk><target dev="vdc"/></disk><hostdev mode="subsystem" type="pci"/>`},
	})
	if err != nil || strings.Contains(text, "hostdev") || !strings.Contains(text, `dev="vdc"`) {
		t.Errorf("it becomes (%v)\n%s", err, text)
	}
}
