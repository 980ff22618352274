package hostpki

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func newHost(t *testing.T) *Host {
	t.Helper()
	return &Host{Root: t.TempDir(), Daemon: "libvirtd", Group: os.Getgid()}
}

func material(word string, names ...string) Material {
	pair := func(side string) Pair {
		return Pair{CA: []byte(word + side + "ca"), Certificate: []byte(word + side + "cert"), Key: []byte(word + side + "key")}
	}
	return Material{Control: pair(" control "), Data: pair(" data "), Names: names}
}

func (h *Host) put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(h.path(path)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(h.path(path), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (h *Host) has(t *testing.T, path, want string) {
	t.Helper()
	if got, err := h.read(path); err != nil || string(got) != want {
		t.Errorf("%s has %q (%v), want %q", path, got, err, want)
	}
}

func install(t *testing.T, h *Host, m Material, replace bool) (restart bool) {
	t.Helper()
	restart, err := h.Install(m, replace)
	if err != nil {
		t.Fatal(err)
	}
	return restart
}

func TestQEMUReadsItsOwnKeysAndNoneOfLibvirts(t *testing.T) {
	h := newHost(t)
	if !install(t, h, material("one", "hv1", "hv2"), false) {
		t.Error("libvirt is not told of its list")
	}
	for _, path := range Files() {
		data, err := h.read(path)
		if err != nil || data == nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		side, mode := " data ", fs.FileMode(0o644)
		if !strings.Contains(path, "/qemu/") {
			side = " control "
		}
		if strings.Contains(path, "key.pem") {
			mode = 0o600
			if side == " data " {
				mode = 0o640
			}
		}
		if !strings.Contains(string(data), side) {
			t.Errorf("%s has %q, want what is%sonly", path, data, side)
		}
		info, err := os.Stat(h.path(path))
		if err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: mode %v (%v), want %v", path, info.Mode(), err, mode)
		}
	}
	for path, want := range map[string]fs.FileMode{h.path("/etc/pki/libvirt/private"): 0o700, h.state("record.json"): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v (%v), want %v", path, info.Mode(), err, want)
		}
	}
	shared := material("two", "hv1")
	shared.Data.Key = shared.Control.Key
	if _, err := h.Install(shared, true); err == nil {
		t.Error("one key for both was installed")
	}
	h.has(t, DataKey, "one data key")
}

func TestWhatIsNotBerthsIsLeftAlone(t *testing.T) {
	h := newHost(t)
	h.put(t, ControlCA, "theirs")
	h.put(t, h.ConfigPath(), "listen_tls = 1\ntls_allowed_dn_list = [\n  \"O=other\",\n]\n# the end\n")
	_, err := h.Install(material("one", "hv1"), false)
	if !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), ControlCA) || !strings.Contains(err.Error(), h.ConfigPath()) {
		t.Fatalf("got %v, want ErrForeign that names both files", err)
	}
	h.has(t, ControlCA, "theirs")
	h.has(t, DataKey, "")
	if h.IsSet() {
		t.Error("it says that it was set up")
	}

	install(t, h, material("one", "hv1"), true)
	h.has(t, ControlCA, "one control ca")
	text, _ := h.read(h.ConfigPath())
	if foreignList(string(text)) != "" || !slices.Equal(namesIn(string(text)), []string{"hv1"}) ||
		!strings.Contains(string(text), "listen_tls = 1") {
		t.Errorf("the configuration is\n%s", text)
	}
	kept, err := h.Remove()
	if err != nil || kept != nil {
		t.Fatal(kept, err)
	}
	h.has(t, ControlCA, "theirs")
	h.has(t, h.ConfigPath(), "listen_tls = 1\ntls_allowed_dn_list = [\n  \"O=other\",\n]\n# the end\n")
	for _, path := range Files()[1:] {
		h.has(t, path, "")
	}
	if h.IsSet() {
		t.Error("it is set up after it was removed")
	}
}

func TestTheOwnFilesAreReplacedWithoutBeingTold(t *testing.T) {
	h := newHost(t)
	install(t, h, material("one", "hv1"), false)
	if err := h.takenUp(true); err != nil {
		t.Fatal(err)
	}
	if install(t, h, material("two", "hv1"), false) {
		t.Error("the list is the same, and the daemon would be restarted")
	}
	h.has(t, ControlKey, "two control key")
	if changed, err := h.Allow([]string{"hv2", "hv1"}); err != nil || !changed {
		t.Errorf("a new node: %v, %v", changed, err)
	}
	if err := h.takenUp(true); err != nil {
		t.Fatal(err)
	}
	if changed, err := h.Allow([]string{"hv1", "hv2"}); err != nil || changed {
		t.Errorf("the same nodes: %v, %v", changed, err)
	}
	// What somebody changes is theirs from then on.
	h.put(t, DataCA, "theirs")
	if _, err := h.Install(material("three", "hv1"), false); !errors.Is(err, ErrForeign) {
		t.Errorf("got %v, want ErrForeign", err)
	}
	kept, err := h.Remove()
	if err != nil || !slices.Equal(kept, []string{DataCA}) {
		t.Errorf("kept %v, %v", kept, err)
	}
	h.has(t, DataCA, "theirs")
	h.has(t, ControlKey, "")
}

func TestNamesThatLibvirtWouldReadAsMoreAreRefused(t *testing.T) {
	for _, names := range [][]string{nil, {"*"}, {"hv?"}, {`hv1", "CN=x`}, {"hv1\nlisten_tcp = 1"}, {""}} {
		if text, err := withNames("a = 1\n", names); err == nil {
			t.Errorf("%q gave\n%s", names, text)
		}
	}
	text := "a = 1\n"
	for _, names := range [][]string{{"hv1"}, {"hv2", "hv1"}, {"hv3"}} {
		var err error
		if text, err = withNames(text, names); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(namesIn(text), []string{"hv3"}) || strings.Count(text, allowed) != 1 || withoutNames(text) != "a = 1\n" {
		t.Errorf("after three lists:\n%s", text)
	}
}

// programs answers for systemctl, virsh and virt-admin.
type programs struct {
	ran    []string
	answer func(line string) (string, error)
}

func (p *programs) run(_ context.Context, name string, args ...string) (string, error) {
	line := strings.Join(append([]string{name}, args...), " ")
	p.ran = append(p.ran, line)
	return p.answer(line)
}

func (p *programs) did(part string) bool {
	return slices.ContainsFunc(p.ran, func(line string) bool { return strings.Contains(line, part) })
}

func TestNewCertificatesNeedNoRestart(t *testing.T) {
	h := newHost(t)
	install(t, h, material("one", "hv1"), false)
	p := &programs{answer: func(string) (string, error) { return "", nil }}
	s := &Service{Run: p.run, Systemd: true}
	if _, err := s.TakeUp(t.Context(), h, false); err != nil || !p.did("server-update-tls libvirtd") || p.did("restart") {
		t.Errorf("%v: it ran %q", err, p.ran)
	}
	p.ran = nil
	if _, err := s.TakeUp(t.Context(), h, true); err != nil || !p.did("try-restart libvirtd.service") {
		t.Errorf("a new list: %v: it ran %q", err, p.ran)
	}
}

// A list that the daemon has not read is no list yet: one that was not taken up is so when it is looked at the next time.
func TestARestartThatFailedIsTriedAgain(t *testing.T) {
	h := newHost(t)
	install(t, h, material("one", "hv1"), false)
	fails := errors.New("the job timed out")
	p := &programs{answer: func(line string) (string, error) {
		if strings.Contains(line, "try-restart") {
			return "", fails
		}
		return "", nil
	}}
	s := &Service{Run: p.run, Systemd: true}
	names := []string{"hv1", "hv2"}
	if due, err := h.Allow(names); err != nil || !due {
		t.Fatalf("a new list: restart %t, %v", due, err)
	}
	if _, err := s.TakeUp(t.Context(), h, true); !errors.Is(err, fails) {
		t.Errorf("the restart: %v", err)
	}
	if due, err := h.Allow(names); err != nil || !due {
		t.Errorf("the same list, which the daemon does not have: restart %t, %v", due, err)
	}
	fails = nil
	if _, err := s.TakeUp(t.Context(), h, true); err != nil {
		t.Error(err)
	}
	if due, err := h.Allow(names); err != nil || due {
		t.Errorf("the same list, which it has: restart %t, %v", due, err)
	}
}

func TestASocketThatIsMissingIsAddedAndTakenAwayAgain(t *testing.T) {
	h := newHost(t)
	install(t, h, material("one", "hv1"), false)
	p := &programs{answer: func(line string) (string, error) {
		if strings.Contains(line, "is-active") || strings.Contains(line, "is-enabled") {
			return "", errors.New("no")
		}
		return "", nil
	}}
	s := &Service{Run: p.run, Systemd: true}
	if _, err := s.TakeUp(t.Context(), h, true); err != nil || !p.did("enable libvirtd-tls.socket") || !p.did("start libvirtd-tls.socket") {
		t.Errorf("%v: it ran %q", err, p.ran)
	}
	if h.Socket() != "libvirtd-tls.socket" {
		t.Errorf("it remembers the socket %q", h.Socket())
	}
	if _, err := s.Leave(t.Context(), h.Daemon, h.Socket()); err != nil || !p.did("disable --now libvirtd-tls.socket") {
		t.Errorf("%v: it ran %q", err, p.ran)
	}
}

func TestAMigrationIsWaitedFor(t *testing.T) {
	looks := 0
	p := &programs{}
	p.answer = func(line string) (string, error) {
		switch {
		case strings.Contains(line, "list --uuid"):
			return "u1\nu2\n", nil
		case strings.Contains(line, "domjobinfo u1"):
			return "Job type:         None\n", nil
		case strings.Contains(line, "domjobinfo u2"):
			if looks++; looks == 1 {
				return "Job type:         Unbounded\n", nil
			}
			return "Job type:         None\n", nil
		case strings.Contains(line, "restart"):
			if looks != 2 {
				t.Errorf("restarted after %d looks: a guest was on its way", looks)
			}
		}
		return "", nil
	}
	h := newHost(t)
	install(t, h, material("one", "hv1"), false)
	if _, err := (&Service{Run: p.run, Systemd: true}).TakeUp(t.Context(), h, true); err != nil || !p.did("try-restart") {
		t.Errorf("%v: it ran %q", err, p.ran)
	}
}

func TestTheGroupOfQEMUIsTheConfiguredOne(t *testing.T) {
	root := t.TempDir()
	h := &Host{Root: root}
	h.put(t, "/etc/libvirt/qemu.conf", "#group = \"kvm\"\n group = \"+1234\"\n")
	if id, _, err := QEMUGroup(root); err != nil || id != 1234 {
		t.Errorf("got %d, %v", id, err)
	}
	h.put(t, "/etc/libvirt/qemu.conf", "group = \"no-such-group\"\n")
	if _, _, err := QEMUGroup(root); err == nil || !strings.Contains(err.Error(), "no-such-group") {
		t.Errorf("got %v", err)
	}
}
