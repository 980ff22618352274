// Package hostpki sets up what libvirt and QEMU of a host need for live migration over TLS, keeps it true, and takes it away again.
//
// libvirt's keys and QEMU's are apart, and so are the authorities that they trust: whoever breaks out of a guest has what its QEMU
// reads, and no libvirt takes that. libvirt lets in only whom a list names.
//
// What is on the host is somebody's. So each file that is replaced is kept, a set-up of others is left alone unless told otherwise,
// and a record of what was written, which root alone can write, says later what may be replaced or removed without asking.
package hostpki

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"berth/shared/config"
)

// DefaultState is where the record and the kept files are. Only root reads it.
const DefaultState = "/var/lib/berth/libvirt-tls"

// The causes for which nothing is changed.
var (
	ErrForeign = errors.New("libvirt or QEMU has TLS files that are not Berth's")
	ErrNotSet  = errors.New("libvirt's TLS was not set up by Berth here")
)

// Pair is an authority, a certificate of it, and the certificate's key, in PEM.
type Pair struct{ CA, Certificate, Key []byte }

// Material is what a host is issued.
type Material struct {
	Control Pair     // libvirt's
	Data    Pair     // QEMU's
	Names   []string // of the nodes that libvirt lets in
}

// Host is where the files are.
type Host struct {
	Root   string // what stands before every path; empty on a real host
	State  string // empty: DefaultState
	Daemon string // libvirt's daemon that answers other hosts: libvirtd or virtproxyd
	// Group is the ID of the group that QEMU runs as.
	Group int
	Now   func() time.Time
}

// file is one that is written.
type file struct {
	path string
	mode os.FileMode
	qemu bool // QEMU's group reads it
	data func(m *Material) []byte
}

// The files that libvirt and QEMU look for. Names and places are theirs.
const (
	ControlCA          = "/etc/pki/CA/cacert.pem"
	ControlCertificate = "/etc/pki/libvirt/servercert.pem"
	ControlKey         = "/etc/pki/libvirt/private/serverkey.pem"
	DataCA             = "/etc/pki/qemu/ca-cert.pem"
	DataCertificate    = "/etc/pki/qemu/server-cert.pem"
	DataKey            = "/etc/pki/qemu/server-key.pem"

	clientControlCertificate = "/etc/pki/libvirt/clientcert.pem"
	clientControlKey         = "/etc/pki/libvirt/private/clientkey.pem"
	clientDataCertificate    = "/etc/pki/qemu/client-cert.pem"
	clientDataKey            = "/etc/pki/qemu/client-key.pem"
)

var files = []file{
	{ControlCA, 0o644, false, func(m *Material) []byte { return m.Control.CA }},
	{ControlKey, 0o600, false, func(m *Material) []byte { return m.Control.Key }},
	{ControlCertificate, 0o644, false, func(m *Material) []byte { return m.Control.Certificate }},
	{clientControlKey, 0o600, false, func(m *Material) []byte { return m.Control.Key }},
	{clientControlCertificate, 0o644, false, func(m *Material) []byte { return m.Control.Certificate }},
	{DataCA, 0o644, false, func(m *Material) []byte { return m.Data.CA }},
	{DataKey, 0o640, true, func(m *Material) []byte { return m.Data.Key }},
	{DataCertificate, 0o644, false, func(m *Material) []byte { return m.Data.Certificate }},
	{clientDataKey, 0o640, true, func(m *Material) []byte { return m.Data.Key }},
	{clientDataCertificate, 0o644, false, func(m *Material) []byte { return m.Data.Certificate }},
}

// Files are the paths of all files that have to be there.
func Files() []string {
	var paths []string
	for _, f := range files {
		paths = append(paths, f.path)
	}
	return paths
}

// record is what Berth has written on this host.
type record struct {
	Files  map[string]written `json:"files"`
	Config string             `json:"config,omitempty"` // the daemon's configuration with the list of names
	Socket string             `json:"socket,omitempty"` // of systemd, which was not enabled before
	// Restart: the list of names was changed, and the daemon was not restarted since. It is tried again, whatever came in between.
	Restart bool `json:"restart,omitempty"`
	// Written: keys, certificates or authorities were written, and the daemon was not told since.
	Written bool `json:"written,omitempty"`
}

type written struct {
	SHA256 string `json:"sha256"`
	Backup string `json:"backup,omitempty"` // what was there before, below the state directory
}

func (h *Host) path(name string) string { return filepath.Join(h.Root, name) }

func (h *Host) state(names ...string) string {
	state := h.State
	if state == "" {
		state = h.path(DefaultState)
	}
	return filepath.Join(append([]string{state}, names...)...)
}

// ConfigPath is the configuration of the daemon that answers other hosts.
func (h *Host) ConfigPath() string { return "/etc/libvirt/" + h.Daemon + ".conf" }

func (h *Host) record() (record, error) {
	var r record
	text, err := os.ReadFile(h.state("record.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return record{Files: map[string]written{}}, ErrNotSet
	}
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("%s is damaged: %w", h.state("record.json"), err)
	}
	if r.Files == nil {
		r.Files = map[string]written{}
	}
	return r, nil
}

func (h *Host) save(r record) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return config.WriteFile(h.state("record.json"), append(text, '\n'), 0o600)
}

func sum(data []byte) string {
	hash := sha256.Sum256(data)
	return hex.EncodeToString(hash[:])
}

// read is a file's content; nil if there is none.
func (h *Host) read(path string) ([]byte, error) {
	data, err := os.ReadFile(h.path(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// IsSet tells whether Berth has set TLS up here.
func (h *Host) IsSet() bool {
	_, err := h.record()
	return err == nil
}

// Change is what would be done to one file, or to the service.
type Change struct {
	Path    string
	What    string
	Foreign bool // it is somebody else's
}

// Plan says what Install would change, before anything is asked for or written.
func (h *Host) Plan() ([]Change, error) {
	r, err := h.record()
	if err != nil && !errors.Is(err, ErrNotSet) {
		return nil, err
	}
	var changes []Change
	for _, f := range files {
		now, err := h.read(f.path)
		if err != nil {
			return nil, err
		}
		switch entry, known := r.Files[f.path]; {
		case now == nil:
			changes = append(changes, Change{Path: f.path, What: "make"})
		case known && entry.SHA256 == sum(now):
			changes = append(changes, Change{Path: f.path, What: "write anew"})
		default:
			changes = append(changes, Change{Path: f.path, What: "replace, and keep a copy", Foreign: true})
		}
	}
	text, err := h.read(h.ConfigPath())
	if err != nil {
		return nil, err
	}
	change := Change{Path: h.ConfigPath(), What: "name the nodes that may connect (" + allowed + ")"}
	if own := foreignList(string(text)); own != "" {
		change.What, change.Foreign = change.What+" in place of the list that is there", true
	}
	return append(changes, change), nil
}

// Foreign are the paths in a plan that are somebody else's.
func Foreign(plan []Change) []string {
	var paths []string
	for _, c := range plan {
		if c.Foreign {
			paths = append(paths, c.Path)
		}
	}
	return paths
}

// Install writes what the host was issued. Files of others are replaced only if told, and then a copy is kept. It tells whether
// the daemon has to read its configuration anew. The error may be ErrForeign, and then nothing was changed.
func (h *Host) Install(m Material, replace bool) (restart bool, err error) {
	if err := m.check(); err != nil {
		return false, err
	}
	plan, err := h.Plan()
	if err != nil {
		return false, err
	}
	if foreign := Foreign(plan); len(foreign) > 0 && !replace {
		return false, fmt.Errorf("%w: %s", ErrForeign, strings.Join(foreign, ", "))
	}
	if err := os.MkdirAll(h.state("backup"), 0o700); err != nil {
		return false, err
	}
	r, err := h.record()
	if err != nil && !errors.Is(err, ErrNotSet) {
		return false, err
	}
	for _, f := range files {
		if err := h.write(&r, f, f.data(&m)); err != nil {
			return false, err
		}
	}
	return h.allow(&r, m.Names)
}

// write puts one file in its place, after the record says so: a file that is not written yet is taken for a foreign one, never lost.
func (h *Host) write(r *record, f file, data []byte) error {
	now, err := h.read(f.path)
	if err != nil {
		return err
	}
	entry := r.Files[f.path]
	if now != nil && entry.SHA256 != sum(now) {
		if entry.Backup, err = h.keep(f.path, now); err != nil {
			return err
		}
	}
	if err := h.makeFolder(filepath.Dir(f.path)); err != nil {
		return err
	}
	if sum(now) != sum(data) {
		r.Written = true
		if err := h.save(*r); err != nil { // before: who is killed here must not say that it is used
			return err
		}
		if err := config.WriteFile(h.path(f.path), data, 0o600); err != nil {
			return err
		}
	}
	group := 0
	if f.qemu {
		group = h.Group
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(h.path(f.path), 0, group); err != nil {
			return err
		}
	}
	if err := os.Chmod(h.path(f.path), f.mode); err != nil {
		return err
	}
	entry.SHA256 = sum(data)
	r.Files[f.path] = entry
	return h.save(*r)
}

// makeFolder makes a folder that is not there. libvirt's keys have one that only root enters.
func (h *Host) makeFolder(path string) error {
	mode := os.FileMode(0o755)
	if filepath.Base(path) == "private" {
		mode = 0o700
	}
	if err := os.MkdirAll(filepath.Dir(h.path(path)), 0o755); err != nil {
		return err
	}
	err := os.Mkdir(h.path(path), mode)
	if err == nil {
		return os.Chmod(h.path(path), mode)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// keep stores what a file was, under a name that nothing has yet.
func (h *Host) keep(path string, data []byte) (name string, err error) {
	name = strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", "_") + "." + h.now().UTC().Format("20060102T150405.000000000")
	if err := os.MkdirAll(h.state("backup"), 0o700); err != nil {
		return "", err
	}
	return name, config.WriteFile(h.state("backup", name), data, 0o600)
}

func (h *Host) now() time.Time {
	if h.Now != nil {
		return h.Now()
	}
	return time.Now()
}

func (m *Material) check() error {
	for name, pair := range map[string]Pair{"control": m.Control, "data": m.Data} {
		if len(pair.CA) == 0 || len(pair.Certificate) == 0 || len(pair.Key) == 0 {
			return fmt.Errorf("the %s authority, certificate or key is missing", name)
		}
	}
	if string(m.Control.Key) == string(m.Data.Key) || string(m.Control.CA) == string(m.Data.CA) {
		return errors.New("libvirt and QEMU would have one key or one authority")
	}
	return nil
}

// Allow writes the names of the nodes that may connect. It tells whether the daemon does not have these names yet and has to be
// restarted.
func (h *Host) Allow(names []string) (restart bool, err error) {
	r, err := h.record()
	if err != nil {
		return false, err
	}
	return h.allow(&r, names)
}

func (h *Host) allow(r *record, names []string) (restart bool, err error) {
	text, err := h.read(h.ConfigPath())
	if err != nil {
		return false, err
	}
	block, err := withNames(string(text), names)
	if err != nil {
		return false, err
	}
	if r.Config != h.ConfigPath() {
		r.Config = h.ConfigPath()
		if text != nil {
			// Removal takes only the own lines out again. This copy is for people.
			if _, err := h.keep(h.ConfigPath(), text); err != nil {
				return false, err
			}
		}
		if err := h.save(*r); err != nil {
			return false, err
		}
	}
	if block == string(text) {
		return r.Restart, nil
	}
	r.Restart = true
	if err := h.save(*r); err != nil {
		return false, err
	}
	mode := os.FileMode(0o644)
	if info, err := os.Stat(h.path(h.ConfigPath())); err == nil {
		mode = info.Mode().Perm()
	}
	if err := os.MkdirAll(filepath.Dir(h.path(h.ConfigPath())), 0o755); err != nil {
		return false, err
	}
	return true, config.WriteFile(h.path(h.ConfigPath()), []byte(block), mode)
}

// Remove takes away what Install has written, and puts back what was there before. What somebody has changed since stays, and is told.
func (h *Host) Remove() (kept []string, err error) {
	r, err := h.record()
	if err != nil {
		return nil, err
	}
	for _, path := range Files() {
		entry, known := r.Files[path]
		if !known {
			continue
		}
		now, err := h.read(path)
		if err != nil {
			return kept, err
		}
		if now != nil && sum(now) != entry.SHA256 {
			kept = append(kept, path)
			continue
		}
		if err := h.putBack(path, entry.Backup); err != nil {
			return kept, err
		}
	}
	if r.Config != "" {
		text, err := h.read(r.Config)
		if err != nil {
			return kept, err
		}
		if without := withoutNames(string(text)); without != string(text) {
			info, err := os.Stat(h.path(r.Config))
			if err != nil {
				return kept, err
			}
			if err := config.WriteFile(h.path(r.Config), []byte(without), info.Mode().Perm()); err != nil {
				return kept, err
			}
		}
	}
	return kept, os.Remove(h.state("record.json"))
}

func (h *Host) putBack(path, backup string) error {
	if backup == "" {
		if err := os.Remove(h.path(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	data, err := os.ReadFile(h.state("backup", filepath.Base(backup)))
	if err != nil {
		return err
	}
	i := slices.IndexFunc(files, func(f file) bool { return f.path == path })
	if err := config.WriteFile(h.path(path), data, files[i].mode); err != nil {
		return err
	}
	if files[i].qemu && os.Geteuid() == 0 {
		return os.Chown(h.path(path), 0, h.Group)
	}
	return nil
}

// Material is what is on the host now. What is missing is empty.
func (h *Host) Material() (Material, error) {
	var m Material
	for path, into := range map[string]*[]byte{
		ControlCA: &m.Control.CA, ControlCertificate: &m.Control.Certificate, ControlKey: &m.Control.Key,
		DataCA: &m.Data.CA, DataCertificate: &m.Data.Certificate, DataKey: &m.Data.Key,
	} {
		var err error
		if *into, err = h.read(path); err != nil {
			return m, err
		}
	}
	text, err := h.read(h.ConfigPath())
	if err != nil {
		return m, err
	}
	m.Names = namesIn(string(text))
	return m, nil
}
