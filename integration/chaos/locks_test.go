package chaos

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"berth/integration/lab"
)

// FAULTS.md, W5. The hosts try whether locks of files in shared pools reach one another. In one pool they do. In the second, one host has
// mounted the folder so that it keeps locks to itself, as NFS with nolock does. The third pool is no shared one, though it is declared so.
func TestLocksThatDoNotReachOtherHostsAreFoundOut(t *testing.T) {
	s := begin(t)
	ctx := s.Context()
	nolock, apart := lab.SharedDir+"/nolock", "/var/lib/libvirt/apart"
	deaf := s.lab.Hosts[1]
	clean := func(commands ...[]string) {
		for _, args := range commands {
			s.Cleanup(func() {
				if _, err := s.lab.Berth(s.background(), args...); err != nil {
					s.Error(err)
				}
			})
		}
	}
	for _, host := range s.lab.Hosts {
		s.on(host.Machine, "mkdir", "-p", nolock, apart)
		if host == deaf {
			script := `[ -e /dev/fuse ] || mknod /dev/fuse c 10 229
				mkdir -p /run/nolock && mount --bind "$1" /run/nolock && bindfs /run/nolock "$1"` // it forwards no lock
			s.says(host.Machine, []string{"sh", "-c", script, "mount", nolock}, 0)
			s.Cleanup(func() {
				if _, err := host.Exec(s.background(), "umount", "--lazy", nolock, "/run/nolock"); err != nil {
					s.Error(err)
				}
			})
		}
		for name, folder := range map[string]string{"nolock": nolock, "apart": apart} {
			s.must(host.AddPool(ctx, name, folder))
			s.Cleanup(func() {
				if _, err := host.Exec(s.background(), "sh", "-c", "virsh -q pool-destroy "+name+" && virsh -q pool-undefine "+name); err != nil {
					s.Error(err)
				}
			})
		}
	}
	for _, pool := range []string{"shared", "nolock", "apart"} {
		s.does("pool", "add", pool, "--cluster", "default", "--scope", "shared")
		clean([]string{"pool", "delete", pool, "--yes"})
	}
	shows := func(pool string, words ...string) {
		s.Helper()
		s.within(110*time.Second, "pool "+pool+" is tried", func() error {
			text := s.does("pool", "show", pool)
			for _, word := range words {
				if !strings.Contains(text, word) {
					return fmt.Errorf("it does not say %q:\n%s", word, text)
				}
			}
			return nil
		})
	}
	shows("shared", "each of 3 nodes sees those of another one")
	shows("nolock", "do not reach other nodes: ", deaf.Name, "had locked a file there")
	shows("apart", "the pool is not shared")
	s.answers([]string{"status"}, 0, "pool apart is declared as shared, and ", "declare pool apart with scope local")

	guest := []string{
		"--memory", "128M", "--vcpus", "1", "--kernel", lab.Kernel, "--initrd", lab.Initrd, "--cmdline", lab.Cmdline, "--root-size", "16M",
	}
	start := func(name string, more ...string) []string {
		return append(append([]string{"vm", "start", name}, guest...), more...)
	}
	s.refuse(
		refusal{"no lock stops it", start("db", "--ha", "--pool", "nolock"), 1, []string{`VM "db" with ha has a disk in pool nolock`}},
		refusal{"it would have another disk", start("db", "--ha", "--pool", "apart"), 1, []string{`VM "db" with ha has a disk in pool apart`}},
	)
	s.does(start("web", "--ha", "--pool", "shared")...)
	s.does(start("db", "--pool", "nolock", "--node", s.lab.Hosts[0].Name)...)
	s.refuse(refusal{"it has one already", []string{"vm", "set", "db", "--ha"}, 1, []string{"--ha-without-lock true"}})
	s.does("pool", "set", "nolock", "--ha-without-lock", "true")
	s.does("vm", "set", "db", "--ha")
	if text := s.does("status"); strings.Contains(text, "nolock") {
		s.Errorf("what somebody has accepted is told: %s", text)
	}
	s.does("pool", "set", "nolock", "--ha-without-lock", "false")
	s.answers([]string{"status"}, 0, "no lock in pool nolock would stop a second copy of VMs with ha (db)")
	for _, vm := range []string{"web", "db"} {
		s.does("vm", "stop", vm, "--force")
		s.does("vm", "delete", vm, "--yes")
	}
	for _, host := range s.lab.Hosts {
		s.within(2*time.Minute, host.Name+" keeps no volume of a trial", func() error {
			left, err := host.Volumes(ctx)
			if text := strings.Join(left, " "); err != nil || strings.Contains(text, "berth-lock-") {
				return fmt.Errorf("%s: %w", text, err)
			}
			return nil
		})
	}
}
