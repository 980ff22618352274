package packaging

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

const certs = "bin/berth-libvirt-certs"

func run(t *testing.T, arguments ...string) {
	t.Helper()
	if out, err := exec.Command(arguments[0], arguments[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", arguments, err, out)
	}
}

func certificate(t *testing.T, path string) *x509.Certificate {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		t.Fatalf("%s holds no certificate", path)
	}
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return parsed
}

func TestMigrationCertificatesAreGoodForTheirPurposeOnly(t *testing.T) {
	folder := t.TempDir()
	run(t, certs, "make", folder, "hv1.example.com,192.0.2.1")
	run(t, certs, "make", folder, "hv2.example.com") // later, with the same authority
	roots := x509.NewCertPool()
	roots.AddCert(certificate(t, filepath.Join(folder, "ca.pem")))
	for _, host := range []string{"hv1.example.com", "hv2.example.com"} {
		root := t.TempDir()
		run(t, "tar", "-C", root, "-xf", filepath.Join(folder, host+".tar"))
		for file, usage := range map[string]x509.ExtKeyUsage{
			"etc/pki/libvirt/servercert.pem": x509.ExtKeyUsageServerAuth,
			"etc/pki/libvirt/clientcert.pem": x509.ExtKeyUsageClientAuth,
			"etc/pki/qemu/server-cert.pem":   x509.ExtKeyUsageServerAuth,
			"etc/pki/qemu/client-cert.pem":   x509.ExtKeyUsageClientAuth,
		} {
			parsed := certificate(t, filepath.Join(root, file))
			if _, err := parsed.Verify(x509.VerifyOptions{Roots: roots, DNSName: host, KeyUsages: []x509.ExtKeyUsage{usage}}); err != nil {
				t.Errorf("%s: %s: %v", host, file, err)
			}
			if len(parsed.ExtKeyUsage) != 1 || parsed.IsCA {
				t.Errorf("%s: %s is good for %v, authority: %v", host, file, parsed.ExtKeyUsage, parsed.IsCA)
			}
		}
		for _, key := range []string{"etc/pki/libvirt/private/serverkey.pem", "etc/pki/qemu/client-key.pem"} {
			info, err := os.Stat(filepath.Join(root, key))
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %s: %v, %v, want a file that only its owner reads", host, key, info, err)
			}
		}
	}
	info, err := os.Stat(filepath.Join(folder, "ca.key"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("ca.key: %v, %v", info, err)
	}
}

func TestMigrationCertificatesRefuseAWrongCommandLine(t *testing.T) {
	for _, arguments := range [][]string{{}, {"make"}, {"make", t.TempDir()}, {"install"}, {"remove", "x"}} {
		var exit *exec.ExitError
		if err := exec.Command(certs, arguments...).Run(); !errors.As(err, &exit) || exit.ExitCode() != 64 {
			t.Errorf("%v: %v, want exit status 64", arguments, err)
		}
	}
}
