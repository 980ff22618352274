package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"berth/shared/config"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// login makes an operator and gives a client that speaks as him.
func (m *machine) login(name string) berthv1connect.BerthServiceClient {
	m.t.Helper()
	settings, err := pki.ClientConfig(m.enrolOperator(name), pki.RolePeer)
	m.check(err)
	client := rpc.NewHTTPClient(settings)
	m.t.Cleanup(client.CloseIdleConnections)
	return berthv1connect.NewBerthServiceClient(client, "https://"+m.load().Listen.API)
}

// enrolOperator makes an operator, and answers where his certificate is.
func (m *machine) enrolOperator(name string) pki.Files {
	m.t.Helper()
	token, err := pki.ParseToken(m.token(&berthv1.CreateTokenRequest{Purpose: pki.PurposeOperator}))
	m.check(err)
	request, key, err := pki.NewRequest(name)
	m.check(err)
	stranger := rpc.NewHTTPClient(pki.PinnedClientConfig(token.CAFingerprint))
	defer stranger.CloseIdleConnections()
	answer, err := berthv1connect.NewEnrolmentServiceClient(stranger, "https://"+m.load().Listen.API).Enrol(m.t.Context(),
		connect.NewRequest(&berthv1.EnrolRequest{TokenSecret: token.Secret, Name: name, CsrPem: request}))
	m.check(err)
	dir := m.t.TempDir()
	files := pki.Files{CA: filepath.Join(dir, "ca"), Certificate: filepath.Join(dir, "certificate"), Key: filepath.Join(dir, "key")}
	for path, data := range map[string][]byte{
		files.CA: answer.Msg.GetCaPem(), files.Certificate: answer.Msg.GetCertificatePem(), files.Key: key,
	} {
		m.check(config.WriteFile(path, data, 0o600))
	}
	return files
}

// A backup is from before somebody was revoked, and there is no other store: the directory remembers him.
func TestABackupLetsNobodyBackInWhomTheDirectoryRemembers(t *testing.T) {
	m := newMachine(t, "c1")
	m.init()
	m.run()
	m.status("", led)
	alice, bob := m.login("alice"), m.login("bob")
	call := func(client berthv1connect.BerthServiceClient) error {
		_, err := client.Status(t.Context(), connect.NewRequest(&berthv1.StatusRequest{}))
		return err
	}
	m.check(call(alice))
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		answer, err := m.operator("").ListIdentities(t.Context(), connect.NewRequest(&berthv1.ListIdentitiesRequest{}))
		m.check(err)
		if len(answer.Msg.GetIdentities()) == 4 { // alice, bob, and the two founders
			break
		}
		if time.Now().After(end) {
			t.Fatalf("on record are %v", answer.Msg.GetIdentities())
		}
	}
	saved, err := m.operator("").SaveSnapshot(t.Context(), connect.NewRequest(&berthv1.SaveSnapshotRequest{}))
	m.check(err)
	var data []byte
	for saved.Receive() {
		data = append(data, saved.Msg().GetChunk()...)
	}
	m.check(errors.Join(saved.Err(), saved.Close()))
	backup := filepath.Join(m.dir, "backup")
	m.check(os.WriteFile(backup, data, 0o600))
	_, err = m.operator("").RevokeIdentity(t.Context(), connect.NewRequest(&berthv1.RevokeIdentityRequest{
		Identity: "operator/alice", Reason: "left", RequestId: "r1",
	}))
	m.check(err)
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		kept, err := place{m.data}.revoked()
		m.check(err)
		if len(kept) == 1 && kept[0].Name == "alice" {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the directory remembers %+v", kept)
		}
	}
	m.halt()
	m.check(os.RemoveAll(filepath.Join(m.data, "raft")))
	if out, err := m.verb("c1\n", "recover", "--config", m.config, "--from", backup); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	m.run()
	status := m.status("", led)
	if problems := strings.Join(status.GetProblems(), "\n"); !strings.Contains(problems, "may have been revoked since: operator/admin") ||
		!strings.Contains(problems, "operator/bob") || strings.Contains(problems, "operator/alice") {
		t.Errorf("the problems are %s", problems)
	}
	if err := call(alice); connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("who was revoked since the backup is answered %v", err)
	}
	m.check(call(bob))
	for _, name := range []string{"operator/bob", "operator/admin"} {
		_, err := m.operator("").ConfirmIdentity(t.Context(), connect.NewRequest(&berthv1.ConfirmIdentityRequest{
			Identity: name, RequestId: name,
		}))
		m.check(err)
	}
	if problems := strings.Join(m.status("", led).GetProblems(), "\n"); strings.Contains(problems, "may have been revoked") {
		t.Errorf("all are confirmed, and the problems are %s", problems)
	}
	m.check(os.WriteFile(filepath.Join(m.data, "revoked.json"), []byte("{"), 0o600))
	m.halt()
	if out, err := m.verb("c1\n", "recover", "--config", m.config, "--from", backup); !errors.Is(err, ErrDamaged) {
		t.Errorf("with a broken file of who was revoked: %s, %v", out, err)
	}
}

// An upgraded cluster writes down who is there, and goes on without a refused call.
func TestRecordsBeginAfterAnUpgrade(t *testing.T) {
	m := newMachine(t, "c1")
	m.init()
	who, err := place{m.data}.identity()
	m.check(err)
	who.Founders = nil // a release without records wrote none
	m.check(place{m.data}.saveIdentity(who))
	m.run()
	m.status("", led)
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		answer, err := m.operator("").ListIdentities(t.Context(), connect.NewRequest(&berthv1.ListIdentitiesRequest{}))
		m.check(err)
		seen := 0
		for _, identity := range answer.Msg.GetIdentities() {
			if len(identity.GetKeys()) == 1 && identity.GetValidUntil().AsTime().After(time.Now()) {
				seen++
			}
		}
		if seen == 2 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("on record are %v", answer.Msg.GetIdentities())
		}
	}
}
