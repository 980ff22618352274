package storage

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"berth/integration/lab"
	berthv1 "berth/shared/gen/berth/v1"
)

// vm is what Berth says of a VM.
func (s *site) vm(name string) *berthv1.VM {
	s.Helper()
	var answer berthv1.GetVMResponse
	s.must(s.lab.Ask(s.Context(), &answer, "vm", "show", name))
	return answer.GetVm()
}

// root is the only volume of a VM.
func (s *site) root(name string) *berthv1.VMDisk {
	s.Helper()
	volumes := s.vm(name).GetVolumes()
	if len(volumes) != 1 || volumes[0].GetVolume() == "" {
		s.Fatalf("%s has the volumes %v, want one that is made", name, volumes)
	}
	return volumes[0]
}

// boots starts a VM that boots from a disk of its own, and returns what it says of that.
func (s *site) boots(name string, flags ...string) lab.DiskTick {
	s.Helper()
	s.does(append([]string{"vm", "start", name, "--memory", "128M", "--vdc", "acme-home", "--image", bootImage}, flags...)...)
	return s.diskTick(name)
}

// diskTick is what a guest says next of its disk, wherever it runs.
func (s *site) diskTick(name string) lab.DiskTick {
	s.Helper()
	var tick lab.DiskTick
	s.comes(name+" tells of its disk", func() (err error) {
		tick, err = s.lab.ReadDiskTick(s.Context(), name)
		return err
	})
	return tick
}

// tick is the next sign of life of a guest, wherever it runs.
func (s *site) tick(name string) lab.Tick {
	s.Helper()
	var tick lab.Tick
	s.comes(name+" ticks", func() (err error) {
		tick, err = s.lab.ReadTick(s.Context(), name)
		return err
	})
	return tick
}

// host is the host that runs a VM, as its process shows it.
func (s *site) host(name string) *lab.Host {
	s.Helper()
	host, err := s.lab.HostOf(name)
	s.must(err)
	return host
}

// other is the other host of the same pod.
func (s *site) other(h *lab.Host) *lab.Host {
	return s.lab.Hosts[slices.Index(s.lab.Hosts, h)^1]
}

// checksum is that of the part of a guest's disk which it does not change.
func (s *site) checksum(h *lab.Host, guest string) string {
	s.Helper()
	file, err := h.DiskPath(s.Context(), guest, "vda")
	s.must(err)
	sum, err := h.Checksum(s.Context(), file, "qcow2", lab.StillSize)
	s.must(err)
	return sum
}

// volumes are those in the pools of a host.
func (s *site) volumes(h *lab.Host) []string {
	s.Helper()
	volumes, err := h.Volumes(s.Context())
	s.must(err)
	return volumes
}

// has checks whether a pool of a host has a volume.
func (s *site) has(h *lab.Host, pool, volume string, want bool) {
	s.Helper()
	if got := s.volumes(h); slices.Contains(got, pool+"/"+volume) != want {
		s.Errorf("volume %s in pool %s of %s: want %v, the host has %q", volume, pool, h.Name, want, got)
	}
}

// diskInfo is what qemu-img tells of a disk's file.
type diskInfo struct {
	VirtualSize int64  `json:"virtual-size"`
	Format      string `json:"format"`
	Backing     string `json:"full-backing-filename"`
}

// info looks at a volume of a host with the eyes of QEMU.
func (s *site) info(h *lab.Host, pool, volume string) diskInfo {
	s.Helper()
	path, err := h.Virsh(s.Context(), "vol-path", "--pool", pool, volume)
	s.must(err)
	text, err := h.Exec(s.Context(), "qemu-img", "info", "-U", "--output=json", strings.TrimSpace(path))
	s.must(err)
	var info diskInfo
	s.must(json.Unmarshal([]byte(text), &info))
	return info
}

// running lists the VMs that libvirt runs on each host.
func (s *site) running() map[string][]string {
	s.Helper()
	found := map[string][]string{}
	for _, h := range s.lab.Hosts {
		listed, err := h.Virsh(s.Context(), "list", "--name")
		s.must(err)
		found[h.Name] = strings.Fields(listed)
	}
	return found
}

// operatorMakes runs a command on the operator's machine that makes a file there, and returns the file's path.
func (s *site) operatorMakes(file string, argv ...string) string {
	s.Helper()
	path := "/var/tmp/" + file
	_, err := s.lab.Operator.Exec(s.Context(), append(argv, path)...)
	s.must(err)
	return path
}

// sized is a number of bytes as qemu-img takes it.
func sized(bytes int64) string { return fmt.Sprint(bytes) }
