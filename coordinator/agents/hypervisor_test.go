package agents

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"reflect"
	"slices"
	"testing"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/authorities"
	"berth/coordinator/keyring"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/pki"
)

func certificateOf(t *testing.T, text []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(text)
	if block == nil {
		t.Fatalf("%q is no certificate", text)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

// Whatever a node asks for, its certificates are for the name on record and for where it calls from.
func TestANodeIsCertifiedAsItself(t *testing.T) {
	authority, err := pki.NewAuthority(testCluster, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, "n1", "n2")
	signers, err := pki.NewHypervisors(testCluster, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	r.Hypervisors = keyring.New(signers)
	var said map[string]authorities.Use
	r.FollowHypervisor = func(_ context.Context, who pki.Bearer, says map[string]authorities.Use) error {
		said = says
		if who.ID != "n1" {
			t.Errorf("%s says what n1 uses", who)
		}
		return nil
	}
	url := r.listen(t, authority)
	own := pki.Identity{Role: pki.RoleAgent, ID: "n1", Name: "name-n1", ClusterID: testCluster}
	agent := client(t, url, authority, own, connect.WithGRPC())
	request, _, err := pki.NewRequest("name-n2")
	if err != nil {
		t.Fatal(err)
	}
	ask := func(change func(*berthv1.CertifyHypervisorRequest)) (*berthv1.CertifyHypervisorResponse, error) {
		message := &berthv1.CertifyHypervisorRequest{
			ControlTrusts: []string{"0a", "0b"}, ControlAuthority: "0b", DataTrusts: []string{"0c"}, DataAuthority: "0c",
			ControlCsrPem: request, DataCsrPem: request, MigrationUri: "qemu+tls://name-n1.example.com/system", DataAddress: "10.0.9.1",
		}
		change(message)
		answer, err := agent.CertifyHypervisor(t.Context(), connect.NewRequest(message))
		if err != nil {
			return nil, err
		}
		return answer.Msg, nil
	}
	if _, err := ask(func(*berthv1.CertifyHypervisorRequest) {}); connect.CodeOf(err) != connect.CodeUnavailable {
		t.Errorf("a member that does not lead: %v", err)
	}
	r.Lead(2)
	answer, err := ask(func(*berthv1.CertifyHypervisorRequest) {})
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]authorities.Use{
		authorities.Libvirt: {Trusts: []string{"0a", "0b"}, By: "0b"}, authorities.QEMU: {Trusts: []string{"0c"}, By: "0c"},
	}; !reflect.DeepEqual(said, want) {
		t.Errorf("written down is %v, want %v", said, want)
	}
	control, data := certificateOf(t, answer.GetControlCertificatePem()), certificateOf(t, answer.GetDataCertificatePem())
	for _, certificate := range []*x509.Certificate{control, data} {
		if certificate.Subject.String() != "CN=name-n1" || !slices.Equal(certificate.DNSNames, []string{"name-n1", "name-n1.example.com"}) {
			t.Errorf("it is for %s, %q", certificate.Subject, certificate.DNSNames)
		}
	}
	if len(control.IPAddresses) != 0 || len(data.IPAddresses) != 1 || data.IPAddresses[0].String() != "10.0.9.1" {
		t.Errorf("addresses of control %v, of data %v", control.IPAddresses, data.IPAddresses)
	}
	controlCA, dataCA := certificateOf(t, answer.GetControlCaPem()), certificateOf(t, answer.GetDataCaPem())
	if control.CheckSignatureFrom(controlCA) != nil || data.CheckSignatureFrom(dataCA) != nil || data.CheckSignatureFrom(controlCA) == nil {
		t.Error("control and data are not signed by an authority each")
	}
	if want := []string{"name-n1", "name-n2"}; !slices.Equal(answer.GetNames(), want) {
		t.Errorf("names %q, want %q", answer.GetNames(), want)
	}

	for name, change := range map[string]func(*berthv1.CertifyHypervisorRequest){
		"another's name":    func(m *berthv1.CertifyHypervisorRequest) { m.MigrationUri = "qemu+tls://name-n2/system" },
		"another's address": func(m *berthv1.CertifyHypervisorRequest) { m.MigrationUri = "qemu+tls://10.0.0.2/system" },
		"a loopback":        func(m *berthv1.CertifyHypervisorRequest) { m.DataAddress = "127.0.0.1" },
		"no address":        func(m *berthv1.CertifyHypervisorRequest) { m.DataAddress = "name-n2" },
	} {
		answer, err := ask(change)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, text := range [][]byte{answer.GetControlCertificatePem(), answer.GetDataCertificatePem()} {
			certificate := certificateOf(t, text)
			for _, host := range []string{"name-n2", "10.0.0.2", "127.0.0.1"} {
				if certificate.VerifyHostname(host) == nil {
					t.Errorf("%s: the certificate is good for %s", name, host)
				}
			}
		}
	}
	if answer, err := ask(func(m *berthv1.CertifyHypervisorRequest) { m.ControlCsrPem, m.DataCsrPem = nil, nil }); err != nil ||
		answer.GetControlCertificatePem() != nil || len(answer.GetControlCaPem()) == 0 || len(answer.GetNames()) != 2 {
		t.Errorf("only the names: %v, %v", answer, err)
	}
	for name, csr := range map[string][]byte{"nonsense": []byte("x"), "too long": make([]byte, MaxRequest+1)} {
		if _, err := ask(func(m *berthv1.CertifyHypervisorRequest) { m.DataCsrPem = csr }); connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	gone := client(t, url, authority, pki.Identity{Role: pki.RoleAgent, ID: "n9", Name: "name-n9", ClusterID: testCluster}, connect.WithGRPC())
	_, err = gone.CertifyHypervisor(t.Context(), connect.NewRequest(&berthv1.CertifyHypervisorRequest{ControlCsrPem: request}))
	if connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("a node that was removed: %v", err)
	}
}
