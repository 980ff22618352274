package hostpki

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"berth/shared/pki"
)

// Fault is something wrong with the TLS of libvirt and QEMU on a host.
type Fault struct {
	Text  string
	Next  string // the command that mends it
	Grave bool   // migrations fail, or somebody has a key too many
}

const (
	mend       = "berth-agent libvirt-tls setup --replace"
	renewAgain = "berth-agent libvirt-tls renew"
	// endsSoon is when a certificate should have been renewed long ago.
	endsSoon = 21 * 24 * time.Hour
)

// Look finds what is wrong. It needs no root but for what only root reads, and that is said.
func (h *Host) Look() []Fault {
	missing := h.missing()
	if len(missing) == len(files) {
		return []Fault{{"libvirt and QEMU have no certificates: guests cannot move", "berth-agent libvirt-tls setup", true}}
	}
	var faults []Fault
	for _, path := range missing {
		faults = append(faults, Fault{path + " is missing", mend, true})
	}
	return slices.Concat(faults, h.lookAtKeys(), h.lookAtAuthorities(), h.lookAtEnds(), h.lookAtList(), h.lookAtQEMU())
}

func (h *Host) missing() []string {
	var missing []string
	for _, path := range Files() {
		if _, err := os.Stat(h.path(path)); errors.Is(err, fs.ErrNotExist) {
			missing = append(missing, path)
		}
	}
	return missing
}

// lookAtKeys finds keys of libvirt that QEMU has, or its account can read.
func (h *Host) lookAtKeys() []Fault {
	var faults []Fault
	for _, path := range []string{ControlKey, clientControlKey} {
		info, err := os.Stat(h.path(path))
		if err != nil {
			continue
		}
		if owner, ok := info.Sys().(*syscall.Stat_t); info.Mode().Perm()&0o077 != 0 || ok && h.Root == "" && owner.Uid != 0 {
			faults = append(faults, Fault{fmt.Sprintf("%s can be read by others than root (mode %04o)", path, info.Mode().Perm()), mend, true})
		}
		control, err := os.ReadFile(h.path(path))
		if errors.Is(err, fs.ErrPermission) {
			return append(faults, Fault{"only root reads libvirt's keys: whether QEMU has them too is not known", "run doctor as root", false})
		}
		for _, other := range []string{DataKey, clientDataKey} {
			data, err := os.ReadFile(h.path(other))
			if err == nil && pki.SameKey(control, data) {
				return append(faults, Fault{
					other + " is libvirt's key too: whoever breaks out of a guest controls libvirt on every node that trusts it", mend, true,
				})
			}
		}
	}
	return faults
}

// lookAtAuthorities finds QEMU's certificates that libvirt would take.
func (h *Host) lookAtAuthorities() []Fault {
	authorities := h.certificates(ControlCA)
	for _, path := range []string{DataCertificate, clientDataCertificate, DataCA} {
		for _, certificate := range h.certificates(path) {
			for _, authority := range authorities {
				if certificate.Equal(authority) || certificate.CheckSignatureFrom(authority) == nil {
					return []Fault{{
						path + " is of an authority that libvirt trusts: QEMU and libvirt need one each, or what QEMU reads opens libvirt", mend, true,
					}}
				}
			}
		}
	}
	return nil
}

func (h *Host) certificates(path string) []*x509.Certificate {
	text, err := os.ReadFile(h.path(path))
	if err != nil {
		return nil
	}
	var all []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil {
			all = append(all, certificate)
		}
	}
	return all
}

func (h *Host) lookAtEnds() []Fault {
	next := renewAgain
	if !h.IsSet() {
		next = "renew it where it was made, or " + mend
	}
	var faults []Fault
	for _, path := range []string{ControlCA, DataCA} {
		for _, certificate := range h.certificates(path) {
			if left := certificate.NotAfter.Sub(h.now()); left >= endsSoon && left < pki.AuthorityNotice {
				faults = append(faults, Fault{
					path + ": the authority ends on " + certificate.NotAfter.Format(time.DateOnly),
					"see 'berth status' on a coordinator; all that it has signed ends then", false,
				})
			}
		}
	}
	for _, path := range []string{ControlCA, ControlCertificate, clientControlCertificate, DataCA, DataCertificate, clientDataCertificate} {
		for _, certificate := range h.certificates(path) {
			left := certificate.NotAfter.Sub(h.now())
			switch {
			case left <= 0:
				faults = append(faults, Fault{path + " ended on " + certificate.NotAfter.Format(time.DateOnly), next, true})
			case left < endsSoon:
				faults = append(faults, Fault{path + " ends on " + certificate.NotAfter.Format(time.DateOnly), next, false})
			}
		}
	}
	return faults
}

func (h *Host) lookAtList() []Fault {
	text, err := h.read(h.ConfigPath())
	if err != nil {
		return []Fault{{"whom libvirt lets in is not known: " + err.Error(), "run doctor as root", false}}
	}
	switch {
	case foreignList(string(text)) == "" && namesIn(string(text)) == nil:
		return []Fault{{
			h.ConfigPath() + " has no " + allowed + ": every certificate of the authority is let in", mend, false,
		}}
	case verifiesNothing.Match(text):
		return []Fault{{h.ConfigPath() + " says that callers' certificates are not verified", "take tls_no_verify_certificate out", true}}
	}
	return nil
}

var (
	verifiesNothing = regexp.MustCompile(`(?m)^\s*tls_no_verify_certificate\s*=\s*1`)
	qemuTrustsAll   = regexp.MustCompile(`(?m)^\s*(?:default|migrate)_tls_x509_verify\s*=\s*0`)
	qemuLooksAt     = regexp.MustCompile(`(?m)^\s*(?:default|migrate)_tls_x509_cert_dir\s*=\s*"([^"]*)"`)
)

func (h *Host) lookAtQEMU() []Fault {
	const path = "/etc/libvirt/qemu.conf"
	text, err := h.read(path)
	if err != nil {
		return nil // only root reads it, which is said above
	}
	if line := qemuTrustsAll.Find(text); line != nil {
		return []Fault{{path + ": " + strings.TrimSpace(string(line)) + " lets anybody send guests", "take it out, and restart libvirt", true}}
	}
	if match := qemuLooksAt.FindSubmatch(text); match != nil && strings.TrimSuffix(string(match[1]), "/") != "/etc/pki/qemu" {
		return []Fault{{
			path + ": QEMU's certificates are in " + string(match[1]) + ", which nobody looks after", "take it out, and restart libvirt", false,
		}}
	}
	return nil
}
