package daemon

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/hashicorp/raft"

	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/shared/config"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// confirmAsRoot has root of the coordinator confirm identities that came back with a backup.
func (m *machine) confirmAsRoot(names ...string) {
	m.t.Helper()
	root := *m
	root.client = filepath.Join(m.t.TempDir(), "client.yaml")
	name := "root" + strings.ToLower(rand.Text()[:6])
	if out, err := m.verb("", "login", "--config", m.config, "--client-config", root.client, "--name", name); err != nil {
		m.t.Fatalf("%s: %v", out, err)
	}
	for _, name := range names {
		_, err := root.operator("").ConfirmIdentity(m.t.Context(), connect.NewRequest(&berthv1.ConfirmIdentityRequest{
			Identity: name, RequestId: rand.Text(),
		}))
		m.check(err)
	}
}

// admitRoot has root of the coordinator make an operator, whose client the machine has from then on, if that of before is refused.
func (m *machine) admitRoot() (refused bool) {
	m.t.Helper()
	before := m.operator("")
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		answer, err := before.Status(m.t.Context(), connect.NewRequest(&berthv1.StatusRequest{}))
		if err == nil && led(answer.Msg) {
			return false
		}
		if connect.CodeOf(err) == connect.CodePermissionDenied && strings.Contains(rpc.Detail(err).GetNextStep(), "berth login") {
			break
		}
		if err != nil && connect.CodeOf(err) != connect.CodeUnavailable || time.Now().After(end) { // it is starting
			m.t.Fatalf("a certificate without a record is answered %v", err)
		}
	}
	m.client = filepath.Join(m.t.TempDir(), "client.yaml")
	if out, err := m.verb("", "login", "--config", m.config, "--client-config", m.client, "--name", "root"); err != nil {
		m.t.Fatalf("%s: %v", out, err)
	}
	return true
}

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
	_, err = m.operator("").ConfirmIdentity(t.Context(), connect.NewRequest(&berthv1.ConfirmIdentityRequest{
		Identity: "operator/bob", RequestId: "r2",
	}))
	if connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("whom nobody has confirmed confirms another: %v", err)
	}
	m.confirmAsRoot("operator/bob", "operator/admin")
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

// A backup of a release without records is as good as one that somebody has kept for years: certificates that were revoked since are still
// signed by the cluster's authority. They counted once, after the upgrade, and no recovery lets them count again.
func TestABackupWithoutRecordsLetsNobodyInByACertificateAlone(t *testing.T) {
	m := newMachine(t, "c1")
	made := m.init()
	who, err := place{m.data}.identity()
	m.check(err)
	old := state.NewStore()
	command := state.Command{
		Key: "k1", Kind: "old", At: time.Now(), Meta: map[string]string{state.MetaClusterID: made.ClusterID},
		Expect:  []state.Expectation{{Table: state.Members, ID: who.ID}},
		Members: []model.Member{{ID: who.ID, Name: who.Name, APIAddress: m.load().Listen.API, JoinedAt: time.Now()}},
	}
	entry, err := command.Encode()
	m.check(err)
	if result := old.FSM().Apply(&raft.Log{Index: 1, Type: raft.LogCommand, Data: entry}).(state.Result); result.Refusal != nil {
		t.Fatal(result.Refusal.Message)
	}
	backup := filepath.Join(m.dir, "backup")
	file, err := os.Create(backup)
	m.check(err)
	m.check(errors.Join(old.Snapshot().Save(file), file.Close()))
	m.check(os.RemoveAll(filepath.Join(m.data, "raft")))
	out, err := m.verb("c1\n", "recover", "--config", m.config, "--from", backup, "--unproved")
	if err != nil || !strings.Contains(out, "its state has no operator on record") || !strings.Contains(out, "  berth coordinator login ") {
		t.Fatalf("%s: %v", out, err)
	}
	m.run()
	if !m.admitRoot() {
		t.Error("a certificate without a record is let in")
	}
	m.status("", led)
	m.halt()
}

// What init has written of who is to be let in counts once. Tombstones are many, and are forgotten one day.
func TestFoundersAreForgottenOnceTheyAreOnRecord(t *testing.T) {
	m := newMachine(t, "c1")
	m.init()
	founders := func() int {
		who, err := place{m.data}.identity()
		m.check(err)
		return len(who.Founders)
	}
	if founders() != 2 {
		t.Fatalf("init wrote %d founders", founders())
	}
	m.run()
	m.status("", led)
	for end := time.Now().Add(20 * time.Second); founders() > 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d founders are kept", founders())
		}
	}
	answer, err := m.operator("").ListIdentities(t.Context(), connect.NewRequest(&berthv1.ListIdentitiesRequest{}))
	m.check(err)
	if len(answer.Msg.GetIdentities()) != 2 {
		t.Errorf("on record are %v", answer.Msg.GetIdentities())
	}
}
