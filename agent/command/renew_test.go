package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"berth/shared/config"
	"berth/shared/pki"
)

// The doctor says until when the certificate is good, that it should have been renewed, and how a node comes back whose certificate has
// ended.
func TestTheDoctorTellsOfTheCertificate(t *testing.T) {
	settings := defaults()
	settings.DataDir = t.TempDir()
	authority, err := pki.NewAuthority("c1", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := config.WriteFile(settings.identityPath(), []byte(`{"node_id":"n1","name":"hv1","cluster_id":"c1"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for days, want := range map[int]struct {
		verdict     verdict
		found, next string
	}{
		1:  {good, "renews itself", ""},
		19: {good, "renews itself", ""},
		22: {warning, "should have been renewed", "journalctl"},
		60: {bad, "the certificate ended on", "berth token add --for agent --name hv1"},
	} {
		request, key, err := pki.NewRequest("hv1")
		if err != nil {
			t.Fatal(err)
		}
		who := pki.Identity{Role: pki.RoleAgent, ID: "n1", Name: "hv1", ClusterID: "c1"}
		certificate, err := authority.Sign(request, who, nil, time.Now().AddDate(0, 0, -days), pki.CertificateLife)
		if err != nil {
			t.Fatal(err)
		}
		files := settings.files()
		if err := os.MkdirAll(filepath.Dir(files.CA), 0o700); err != nil {
			t.Fatal(err)
		}
		for path, data := range map[string][]byte{files.CA: authority.CertificatePEM(), files.Certificate: certificate, files.Key: key} {
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		is := examineEnrolment(&settings)
		if is.verdict != want.verdict || !strings.Contains(is.result, want.found) || !strings.Contains(is.next, want.next) {
			t.Errorf("after %d days: %+v", days, is)
		}
	}
}
