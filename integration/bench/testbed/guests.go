package testbed

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"berth/integration/lab"
)

// crowdXML is the smallest domain that libvirt has to ask for everything: two vCPUs, a disk, a network card, a balloon.
// It has no operating system and never runs, so all that it costs is being asked.
const crowdXML = `<domain type="%s">
  <name>%s</name>
  <memory unit="MiB">4</memory>
  <vcpu>2</vcpu>
  <os><type arch="x86_64" machine="pc">hvm</type></os>
  <devices>
    <disk type="file" device="disk">
      <driver name="qemu" type="raw"/>
      <source file="%s"/>
      <target dev="vda" bus="virtio"/>
    </disk>
    <interface type="user"><model type="virtio"/></interface>
    <controller type="usb" model="none"/>
    <memballoon model="virtio"/>
  </devices>
</domain>
`

// Crowd fills a host with n paused guests that Berth has not started. They go with the lab.
func Crowd(ctx context.Context, r *RaisedLab, host *lab.Host, n int) error {
	const image = "crowd.raw"
	var commands []string
	for i := range n {
		name := fmt.Sprintf("crowd%03d", i+1)
		disk := filepath.Join(lab.SharedDir, "images", name+"."+image)
		if err := os.WriteFile(filepath.Join(r.Dir, "shared", "images", name+"."+image), make([]byte, 1<<20), 0o644); err != nil {
			return err
		}
		xml := fmt.Sprintf(crowdXML, r.VirtType, name, disk)
		if err := os.WriteFile(filepath.Join(r.Dir, "shared", name+".xml"), []byte(xml), 0o644); err != nil {
			return err
		}
		commands = append(commands, "create --paused "+filepath.Join(lab.SharedDir, name+".xml"))
	}
	// One virsh for many guests, and two of them at a time: libvirtd starts a guest on one thread.
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(2)
	const batch = 10
	for begin := 0; begin < n; begin += batch {
		some := strings.Join(commands[begin:min(begin+batch, n)], "; ")
		group.Go(func() error {
			_, err := host.Virsh(ctx, some)
			return err
		})
	}
	return group.Wait()
}
