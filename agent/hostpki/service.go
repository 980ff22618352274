package hostpki

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Service is what runs libvirt's daemons and QEMU on a real host.
type Service struct {
	// Run runs a program and gives its output.
	Run func(ctx context.Context, name string, args ...string) (string, error)
	// Systemd tells whether systemd starts the daemons.
	Systemd bool
	// URI is that of the libvirt whose guests are asked for migrations; empty: libvirt's default.
	URI string
}

// NewService is that of this host.
func NewService(uri string) *Service {
	info, err := os.Stat("/run/systemd/system")
	return &Service{Run: run, Systemd: err == nil && info.IsDir(), URI: uri}
}

func run(ctx context.Context, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// Daemon is the daemon that answers other hosts: virtproxyd where libvirt is several daemons, else libvirtd.
func (s *Service) Daemon(ctx context.Context) string {
	if s.Systemd {
		if out, err := s.Run(ctx, "systemctl", "is-enabled", "virtproxyd.socket"); err == nil && strings.TrimSpace(out) == "enabled" {
			return "virtproxyd"
		}
	}
	return "libvirtd"
}

// Busy is a guest with a job, which may be a migration from or to this host; empty: there is none.
func (s *Service) Busy(ctx context.Context) (guest string, err error) {
	out, err := s.Run(ctx, "virsh", "-q", "-c", s.URI, "list", "--uuid")
	if err != nil {
		return "", err
	}
	for uuid := range strings.FieldsSeq(out) {
		// A host that receives a guest refuses to tell of the job. It has one all the same.
		info, err := s.Run(ctx, "virsh", "-q", "-c", s.URI, "domjobinfo", uuid)
		if err != nil || !noJob.MatchString(info) {
			return uuid, nil
		}
	}
	return "", nil
}

var noJob = regexp.MustCompile(`(?m)^Job type:\s+None\s*$`)

// patience is how long migrations are waited for, and busyPause how long until the next look.
const (
	patience  = 15 * time.Minute
	busyPause = 2 * time.Second
)

// TakeUp has the daemon use what was written. Certificates are read by a running daemon; a list of names only by one that starts, and
// a socket is not added to one that runs. Guests do not depend on the daemon, but migrations do, so they are waited for. It returns
// what the administrator has to do, if anything. A restart that fails stays due: Allow and Install ask for it again.
func (s *Service) TakeUp(ctx context.Context, h *Host, restart bool) (todo string, err error) {
	if todo, err = s.takeUp(ctx, h, restart); err != nil {
		return todo, err
	}
	return todo, h.takenUp(restart)
}

func (s *Service) takeUp(ctx context.Context, h *Host, restart bool) (todo string, err error) {
	daemon := h.Daemon
	switch {
	case !s.Systemd && restart:
		return "restart " + daemon + " with --listen: guests run on", nil
	case !restart && s.updateFiles(ctx, daemon) == nil:
		return "", nil
	case !s.Systemd:
		return "restart " + daemon + ": guests run on", nil
	}
	if err := s.awaitIdle(ctx); err != nil {
		return "", err
	}
	if _, err := s.Run(ctx, "systemctl", "--quiet", "is-active", daemon+"-tls.socket"); err == nil {
		_, err := s.Run(ctx, "systemctl", "try-restart", daemon+".service")
		return "", err
	}
	// Clients that connect again would start the daemon at once, so its sockets stop first.
	sockets := []string{daemon + ".socket", daemon + "-ro.socket", daemon + "-admin.socket"}
	if _, err := s.Run(ctx, "systemctl", append([]string{"stop", daemon + ".service"}, sockets...)...); err != nil {
		return "", err
	}
	_, wasEnabled := s.Run(ctx, "systemctl", "--quiet", "is-enabled", daemon+"-tls.socket")
	if _, err := s.Run(ctx, "systemctl", "--quiet", "enable", daemon+"-tls.socket"); err != nil {
		return "", err
	}
	if wasEnabled != nil {
		if err := h.noteSocket(daemon + "-tls.socket"); err != nil {
			return "", err
		}
	}
	_, err = s.Run(ctx, "systemctl", append([]string{"start", daemon + "-tls.socket", daemon + ".service"}, sockets...)...)
	return "", err
}

// updateFiles has a daemon that runs read its certificates anew.
func (s *Service) updateFiles(ctx context.Context, daemon string) error {
	_, err := s.Run(ctx, "virt-admin", "-c", daemon+":///system", "server-update-tls", daemon)
	return err
}

// awaitIdle waits until no guest of this host has a job.
func (s *Service) awaitIdle(ctx context.Context) error {
	deadline := time.Now().Add(patience)
	for {
		guest, err := s.Busy(ctx)
		if err != nil || guest == "" {
			return nil // a daemon that does not answer has no migration that a restart could end
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("guest %s has a job, and a restart of libvirt would end it: run 'berth-agent libvirt-tls renew' later", guest)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(busyPause):
		}
	}
}

// Leave stops the socket that TakeUp has added, and restarts the daemon.
func (s *Service) Leave(ctx context.Context, daemon, socket string) (todo string, err error) {
	if !s.Systemd {
		return "restart " + daemon + ": guests run on", nil
	}
	if err := s.awaitIdle(ctx); err != nil {
		return "", err
	}
	if socket != "" {
		if _, err := s.Run(ctx, "systemctl", "--quiet", "disable", "--now", socket); err != nil {
			return "", err
		}
	}
	_, err = s.Run(ctx, "systemctl", "try-restart", daemon+".service")
	return "", err
}

// renewer is the unit that renews what was set up.
const renewer = "berth-libvirt-tls.timer"

// KeepRenewing has systemd renew from now on, and reports how to renew where it does not.
func (s *Service) KeepRenewing(ctx context.Context) (todo string) {
	if s.Systemd {
		if _, err := s.Run(ctx, "systemctl", "--quiet", "enable", "--now", renewer); err == nil {
			return ""
		}
	}
	return "run 'berth-agent libvirt-tls renew' every few minutes: " + renewer + " of the package is not here to do it"
}

// StopRenewing is its opposite.
func (s *Service) StopRenewing(ctx context.Context) {
	if s.Systemd {
		_, _ = s.Run(ctx, "systemctl", "--quiet", "disable", "--now", renewer) // without it there is nothing to stop
	}
}

// noteSocket remembers that a socket was enabled here, and was not before.
func (h *Host) noteSocket(socket string) error {
	r, err := h.record()
	if err != nil {
		return err
	}
	r.Socket = socket
	return h.save(r)
}

// takenUp takes note that the daemon has what was written, also the list of names if it was restarted, or that somebody was told to do
// that.
func (h *Host) takenUp(restarted bool) error {
	r, err := h.record()
	if err != nil || !r.Written && (!restarted || !r.Restart) {
		return err
	}
	r.Written = false
	if restarted {
		r.Restart = false
	}
	return h.save(r)
}

// Socket is what noteSocket has remembered.
func (h *Host) Socket() string {
	r, _ := h.record()
	return r.Socket
}

var groupLine = regexp.MustCompile(`(?m)^\s*group\s*=\s*"([^"]+)"`)

// QEMUGroup is the group that libvirt runs QEMU as: the configured one, or that of the distribution.
func QEMUGroup(root string) (id int, name string, err error) {
	candidates := []string{"libvirt-qemu", "qemu"}
	if text, err := os.ReadFile(root + "/etc/libvirt/qemu.conf"); err == nil {
		if match := groupLine.FindStringSubmatch(string(text)); match != nil {
			candidates = []string{strings.TrimPrefix(match[1], "+")}
		}
	}
	for _, name := range candidates {
		if number, err := strconv.Atoi(name); err == nil {
			return number, name, nil
		}
		found, err := user.LookupGroup(name)
		if err != nil {
			continue
		}
		number, err := strconv.Atoi(found.Gid)
		return number, name, err
	}
	return 0, "", fmt.Errorf("none of the groups %s is there, and QEMU has to read its keys: set group in /etc/libvirt/qemu.conf",
		strings.Join(candidates, " and "))
}
