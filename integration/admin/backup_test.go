package admin

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"berth/integration/lab"
	"berth/integration/writer"
)

// client is a guest that a backup client of libvirt's backup calls, virtnbdbackup, takes backups of.
type client struct {
	*testing.T
	*site
	name, disk, folder string
	host               *lab.Host // that has the guest
}

// guest starts a guest that writes all the time.
func (c *client) guest() {
	c.Helper()
	if err := writer.Disk(c.host, c.disk); err != nil {
		c.Fatal(err)
	}
	document := filepath.Join(lab.SharedDir, c.name+".xml")
	if err := os.WriteFile(c.lab.Operator.Path(document), []byte(writer.XML(c.lab, c.name, c.disk)), 0o600); err != nil {
		c.Fatal(err)
	}
	c.does("vm", "start", c.name, "--xml", document, "--node", c.host.Name)
	c.writes(0)
}

func (c *client) writes(more int) {
	c.Helper()
	if err := (&play{site: c.site, name: c.name}).writes(c.Context(), more); err != nil {
		c.Fatal(err)
	}
}

func (c *client) does(args ...string) string {
	c.Helper()
	out, err := c.lab.Berth(c.Context(), args...)
	if err != nil {
		c.Fatal(err)
	}
	return out
}

// backs takes a backup of this level where the guest is.
func (c *client) backs(level string) {
	c.Helper()
	out, err := c.host.Exec(c.Context(), "virtnbdbackup", "-n", "-d", c.name, "-l", level, "-o", c.folder)
	if err != nil {
		c.Fatalf("%v\n%s", err, out)
	}
	c.tells(false)
}

// moves has Berth move the guest while it writes.
func (c *client) moves(to *lab.Host) {
	c.Helper()
	c.does("vm", "migrate", c.name, "--to", to.Name)
	c.host = to
	lines, err := writer.Log(c.lab, c.name)
	if err != nil {
		c.Fatal(err)
	}
	c.writes(len(lines) + 3)
}

// holds begins a backup that lasts until its client ends it, and gives orders meanwhile.
func (c *client) holds() {
	c.Helper()
	document := filepath.Join(lab.SharedDir, c.name+".backup.xml")
	text := "<domainbackup mode='pull'><server transport='unix' socket='/var/tmp/kept.nbd'/></domainbackup>"
	if err := os.WriteFile(c.host.Path(document), []byte(text), 0o600); err != nil {
		c.Fatal(err)
	}
	if _, err := c.host.Virsh(c.Context(), "backup-begin", c.name, document); err != nil {
		c.Fatal(err)
	}
	c.tells(true)
	to := c.lab.Hosts[2].Name
	for _, order := range [][]string{
		{"vm", "migrate", c.name, "--to", to}, {"vm", "migrate", c.name, "--to", to, "--dry-run"}, {"vm", "stop", c.name},
	} {
		out, err := c.lab.CLI(c.Context(), order...)
		if err != nil || out.Code != 1 || !strings.Contains(out.Stderr, "backup") {
			c.Errorf("while a backup runs berth %s: %v, exit code %d: %s%s", strings.Join(order, " "), err, out.Code, out.Stdout, out.Stderr)
		}
	}
	if _, err := c.host.Virsh(c.Context(), "domjobabort", c.name); err != nil {
		c.Fatal(err)
	}
	c.tells(false)
}

// tells waits until the guest's page says that a backup keeps it where it is, or says it no more.
func (c *client) tells(runs bool) {
	c.Helper()
	err := poll(c.Context(), 10*time.Second, 200*time.Millisecond, func() error {
		if shown := c.does("vm", "show", c.name); strings.Contains(shown, "backup job") != runs {
			return fmt.Errorf("that a backup runs is %t, and its page says:\n%s", runs, shown)
		}
		return nil
	})
	if err != nil {
		c.Error(err)
	}
}

// restored puts the disk together from the backups, and compares it with the guest's, byte by byte.
func (c *client) restored() {
	c.Helper()
	to := c.folder + ".restored"
	defer os.RemoveAll(c.host.Path(to))
	if out, err := c.host.Exec(c.Context(), "virtnbdrestore", "-n", "-i", c.folder, "-o", to); err != nil {
		c.Fatalf("%v\n%s", err, out)
	}
	out, err := c.host.Exec(c.Context(), "qemu-img", "compare", to+"/"+filepath.Base(c.disk), c.disk)
	if err != nil || !strings.Contains(out, "identical") {
		c.Errorf("the restored disk: %v\n%s", err, out)
	}
}

// A backup client that uses libvirt's calls works beside Berth: full backups and increments, with moves between them, and what is restored
// is what the guest had written. While one runs the guest is neither moved nor stopped.
func TestABackupClientBesideBerth(t *testing.T) {
	s := raise(t, "backup")
	c := &client{
		T: t, site: s, name: "kept", disk: sharedDir + "/kept.qcow2", folder: lab.SharedDir + "/backup", host: s.lab.Hosts[0],
	}
	t.Cleanup(func() { os.RemoveAll(s.lab.Hosts[0].Path(c.folder)) })
	c.guest()
	c.backs("full")
	c.backs("inc")
	c.moves(s.lab.Hosts[1])
	c.backs("inc")
	c.holds()
	c.moves(s.lab.Hosts[0])
	c.does("vm", "pause", c.name)
	c.backs("inc")
	c.does("vm", "stop", c.name, "--force")
	for n := range 3 {
		if _, err := os.Stat(c.host.Path(fmt.Sprintf("%s/vda.inc.virtnbdbackup.%d.data", c.folder, n+1))); err != nil {
			t.Errorf("there is no increment %d: %v", n+1, err)
		}
	}
	c.restored()
}
