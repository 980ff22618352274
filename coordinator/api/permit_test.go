package api

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/api/answer"
	"berth/coordinator/identities"
	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/shared/domxml/guard"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// permitted speaks to this member as an operator on record with these permissions.
func (m *coordinator) permitted(name, permit string) berthv1connect.BerthServiceClient {
	files := m.cloud.certify(m.cloud.t.TempDir(), pki.RoleOperator, "id-"+name, name)
	identity := identities.New(m.cloud.bearer(files), time.Now())
	identity.Permit = permit
	command := state.Command{Kind: "test"}
	identities.Put(&command, identity)
	m.propose(command)
	return m.with(files)
}

// permits has the default cluster permit this.
func (m *coordinator) permits(permit string) {
	m.cloud.t.Helper()
	cluster, known := m.store.Snapshot().ResourceByName(model.KindCluster, model.DefaultCluster)
	if !known {
		cluster = model.DefaultClusterRecord()
	}
	cluster.Settings = map[string]string{model.SettingPermit: permit}
	m.propose(state.Command{Kind: "test", Expect: []state.Expectation{answer.ExpectResource(cluster)}, Resources: []model.Resource{cluster}})
}

// edited is the error of giving VM web these devices.
func edited(t *testing.T, client berthv1connect.BerthServiceClient, devices string) error {
	_, err := client.SetVMDocument(t.Context(), connect.NewRequest(&berthv1.SetVMDocumentRequest{
		Vm: "web", Xml: strings.Replace(someDocument, "<devices/>", devices, 1), DryRun: true,
	}))
	return err
}

func setIdentity(t *testing.T, client berthv1connect.BerthServiceClient, of, permit string) error {
	_, err := client.SetIdentity(t.Context(), connect.NewRequest(&berthv1.SetIdentityRequest{
		Identity: of, Permit: permit, RequestId: answer.NewID(time.Now()),
	}))
	return err
}

// kinds are for each permission what needs that and no other one. A text that does not begin with the devices stands before them.
var kinds = map[guard.Permission]string{
	guard.HostDevices:     "<devices>" + hostDevice + "</devices>",
	guard.HostPaths:       "<devices><disk type='file'><source file='/etc/shadow'/></disk></devices>",
	guard.HostNetwork:     "<devices><interface type='bridge'><source bridge='br9'/></interface></devices>",
	guard.HostSockets:     "<devices><serial type='tcp'><target port='1'/></serial></devices>",
	guard.HostPrograms:    "<devices><emulator>/tmp/x</emulator></devices>",
	guard.HostTuning:      "<memtune/><devices/>",
	guard.SharedFolders:   "<devices><filesystem/></devices>",
	guard.Firmware:        "<os><loader>/tmp/x</loader></os><devices/>",
	guard.Unconfined:      "<devices/><seclabel type='none'/>",
	guard.QEMUCommandline: "<commandline xmlns='http://libvirt.org/schemas/domain/qemu/1.0'><arg value='x'/></commandline><devices/>",
	guard.UnknownElements: "<never-heard/><devices/>",
}

// Of two operators of one cluster that permits everything, one puts onto a host what the other may not, for each kind of the guard.
func TestWhatAnOperatorDoesNotHaveItDoesNotPutOntoAHost(t *testing.T) {
	m := newCloud(t, 1).members[0]
	m.guard("yes")
	m.permits(guard.All)
	m.addNode("n1", "hv1")
	m.addVM(model.VM{ID: "v1", Name: "web", Desired: model.Stopped, Spec: model.VMSpec{Memory: 64 << 20, VCPUs: 1, XML: someDocument}})
	admin, without := m.permitted("admin", guard.All), m.permitted("without", guard.None)
	others := map[guard.Permission]string{}
	for _, permission := range guard.Permissions() {
		others[permission] = guard.Join(slices.DeleteFunc(guard.Permissions(), func(one guard.Permission) bool { return one == permission }))
		devices := kinds[permission]
		if err := edited(t, admin, devices); err != nil {
			t.Errorf("%s, of one who has it: %v", permission, err)
		}
		err := edited(t, without, devices)
		wantRefusal(t, err, rpc.Denied, "vm/web")
		text := err.Error()
		if !strings.Contains(text, "operator/without does not have "+string(permission)) || strings.Contains(text, "cluster") {
			t.Errorf("%s: %s", permission, text)
		}
		want := fmt.Sprintf("'berth identity set operator/without --permit %s'", permission)
		if next := rpc.Detail(err).GetNextStep(); !strings.Contains(next, want) || strings.Contains(next, "--permit all") {
			t.Errorf("%s: %s", permission, next)
		}
	}
	other := m.permitted("other", guard.None)
	for permission, list := range others {
		m.cloud.check(setIdentity(t, admin, "operator/other", list))
		wantRefusal(t, edited(t, other, kinds[permission]), rpc.Denied, "vm/web")
		m.cloud.check(setIdentity(t, admin, "operator/other", string(permission)))
		if err := edited(t, other, kinds[permission]); err != nil {
			t.Errorf("%s alone does not let through what needs it: %v", permission, err)
		}
	}
	// The cluster is the bound of all.
	m.permits(guard.None)
	err := edited(t, admin, kinds[guard.HostDevices])
	wantRefusal(t, err, rpc.Denied, "vm/web")
	next := rpc.Detail(err).GetNextStep()
	if !strings.Contains(next, "cluster set default --permit host-devices") || strings.Contains(next, "identity set") {
		t.Errorf("of the cluster: %s", next)
	}
	next = rpc.Detail(edited(t, without, kinds[guard.HostDevices])).GetNextStep()
	if !strings.Contains(next, "cluster set default") || !strings.Contains(next, "identity set operator/without") {
		t.Errorf("of both: %s", next)
	}
}

// Whoever is let in by a browser has the permissions of its operator.
func TestASessionOfTheConsoleHasTheOperatorsPermissions(t *testing.T) {
	m := newCloud(t, 1).members[0]
	m.addVM(model.VM{ID: "v1", Name: "web", Desired: model.Stopped, Spec: model.VMSpec{Memory: 64 << 20, VCPUs: 1, XML: someDocument}})
	for name, permit := range map[string]string{"with": "host-devices", "without": guard.None} {
		d := m.desk()
		link, _ := offered(t, m.permitted(name, permit), false)
		cookie, _, err := d.Open(t.Context(), link, browser, "Firefox")
		m.cloud.check(err)
		visitor, known := d.Visitor(cookie, browser)
		if !known {
			t.Fatal("its cookie lets nobody in")
		}
		switch err := edited(t, visitor.API, kinds[guard.HostDevices]); {
		case permit == guard.None:
			wantRefusal(t, err, rpc.Denied, "vm/web")
			if !strings.Contains(rpc.Detail(err).GetNextStep(), "identity set operator/without --permit host-devices") {
				t.Errorf("its session: %v", rpc.Detail(err))
			}
		case err != nil:
			t.Errorf("its session: %v", err)
		}
	}
}

// Otherwise two who have nothing could have everything: by each other, by a token, a cluster, a folder, a document or a word.
func TestNobodyGivesWhatItDoesNotHave(t *testing.T) {
	m := newCloud(t, 1).members[0]
	m.guard("yes")
	m.addNode("n1", "hv1")
	m.addVM(model.VM{
		ID: "v1", Name: "web", Desired: model.Stopped, Needs: "host-devices", Bound: "n1",
		Spec: model.VMSpec{Memory: 64 << 20, VCPUs: 1, XML: someDocument},
	})
	admin, bob, carol := m.permitted("admin", guard.All), m.permitted("bob", guard.None), m.permitted("carol", "host-devices")
	full := m.permitted("full", guard.Join(guard.Permissions()))
	token := func(client berthv1connect.BerthServiceClient, purpose, permit string) error {
		_, err := client.CreateToken(t.Context(), connect.NewRequest(&berthv1.CreateTokenRequest{Purpose: purpose, Permit: permit}))
		return err
	}
	cluster := func(client berthv1connect.BerthServiceClient, key, value string) error {
		_, err := client.ChangeResource(t.Context(), connect.NewRequest(&berthv1.ChangeResourceRequest{
			Kind: "cluster", Name: model.DefaultCluster, Settings: map[string]string{key: value},
		}))
		return err
	}
	estate := func(client berthv1connect.BerthServiceClient) error {
		document := "format: berth/estate/v1\nclusters:\n- name: default\n  permit: host-devices\n"
		_, err := client.ApplyEstate(t.Context(), connect.NewRequest(&berthv1.ApplyEstateRequest{Document: []byte(document), DryRun: true}))
		return err
	}
	accept := func(client berthv1connect.BerthServiceClient) error {
		_, err := client.AcceptDrift(t.Context(), connect.NewRequest(&berthv1.AcceptDriftRequest{Vm: "web", RequestId: answer.NewID(time.Now())}))
		return err
	}
	wantRefusal(t, setIdentity(t, bob, "operator/bob", "host-devices"), rpc.Denied, "operator/bob")
	wantRefusal(t, setIdentity(t, carol, "operator/carol", "host-devices,host-paths"), rpc.Denied, "operator/carol")
	wantRefusal(t, setIdentity(t, carol, "operator/bob", "host-devices,host-paths"), rpc.Denied, "operator/bob")
	wantRefusal(t, setIdentity(t, carol, "operator/bob", guard.All), rpc.Denied, "operator/bob")
	wantRefusal(t, setIdentity(t, bob, "operator/carol", "host-devices,firmware"), rpc.Denied, "operator/carol")
	if err := token(bob, "operator", "host-devices"); rpc.Detail(err).GetCode() != rpc.Denied {
		t.Errorf("a token: %v", err)
	}
	wantRefusal(t, cluster(bob, model.SettingPermit, "host-devices"), rpc.Denied, "cluster/default")
	wantRefusal(t, cluster(bob, model.SettingImageFolders, "/srv/images,/etc/berth"), rpc.Denied, "cluster/default")
	wantRefusal(t, estate(bob), rpc.Denied, "cluster/default")
	wantRefusal(t, accept(bob), rpc.Denied, "vm/web")
	// Who has it gives it, and the history says who did.
	m.cloud.check(setIdentity(t, carol, "operator/bob", "host-devices"))
	history := m.store.Snapshot().Events(1)[0]
	if history.Kind != "identity.permitted" || history.Subject != "operator/bob" || history.Caller != "operator/carol" ||
		history.CallerID != "id-carol" || history.Message != "may put onto hosts: host-devices; before: none" {
		t.Errorf("the history has %+v", history)
	}
	m.cloud.check(estate(bob))
	m.cloud.check(token(bob, "operator", "host-devices"))
	m.cloud.check(cluster(bob, model.SettingPermit, "host-devices"))
	m.cloud.check(accept(bob))
	// All is also what later releases will have: only who has that gives it.
	m.cloud.check(setIdentity(t, full, "operator/bob", guard.All))
	if is, _ := m.store.Snapshot().Identity("id-bob"); is.Permit != guard.Join(guard.Permissions()) {
		t.Errorf("bob has %s", is.Permit)
	}
	m.cloud.check(setIdentity(t, admin, "operator/bob", guard.All))
	if is, _ := m.store.Snapshot().Identity("id-bob"); is.Permit != guard.All {
		t.Errorf("bob has %s", is.Permit)
	}
	// Whoever may revoke an operator may take less from it.
	m.cloud.check(setIdentity(t, carol, "bob", guard.None))
	wantRefusal(t, cluster(bob, model.SettingPermit, "host-devices,firmware"), rpc.Denied, "cluster/default")
	wantRefusal(t, setIdentity(t, admin, "bob", "host-device"), rpc.Invalid, "identity/bob")
	wantRefusal(t, setIdentity(t, admin, "bob", ""), rpc.Invalid, "identity/bob")
	wantRefusal(t, setIdentity(t, admin, "dave", guard.None), rpc.NotFound, "identity/dave")
	if err := token(admin, "agent", "host-devices"); rpc.Detail(err).GetCode() != rpc.Invalid {
		t.Errorf("a token of an agent: %v", err)
	}
}

// A token is as good as its maker when it is used, and without a word an operator that is let in has nothing.
func TestAnOperatorThatIsLetInHasWhatItsTokenGives(t *testing.T) {
	c := newCloud(t, 1)
	m := c.members[0]
	admin, carol := m.permitted("admin", guard.All), m.permitted("carol", "host-devices,host-paths")
	n := 0
	login := func(by berthv1connect.BerthServiceClient, permit string, between func()) string {
		t.Helper()
		made, err := by.CreateToken(t.Context(), connect.NewRequest(&berthv1.CreateTokenRequest{Purpose: "operator", Permit: permit}))
		c.check(err)
		token, err := pki.ParseToken(made.Msg.GetToken())
		c.check(err)
		between()
		n++
		name := fmt.Sprint("new", n)
		let, err := m.stranger().Enrol(t.Context(), connect.NewRequest(&berthv1.EnrolRequest{
			TokenSecret: token.Secret, Name: name, CsrPem: c.request(name),
		}))
		c.check(err)
		identity, _ := m.store.Snapshot().Identity(let.Msg.GetId())
		return identity.Permit
	}
	nothing := func() {}
	for permit, want := range map[string]string{"": guard.None, guard.None: guard.None, "host-paths": "host-paths", guard.All: guard.All} {
		if got := login(admin, permit, nothing); got != want {
			t.Errorf("%q gives %q, want %q", permit, got, want)
		}
	}
	taken := func() { c.check(setIdentity(t, admin, "carol", "host-paths")) }
	if got := login(carol, "host-devices,host-paths", taken); got != "host-paths" {
		t.Errorf("a token of one from whom half was taken gives %s", got)
	}
}

// What is taken from somebody is gone at the next call, whichever coordinator that goes to.
func TestWhatWasTakenIsGoneOnFollowersToo(t *testing.T) {
	c := newCloud(t, 3)
	lead, follower := c.leader(), c.follower()
	lead.addVM(model.VM{ID: "v1", Name: "web", Desired: model.Stopped, Spec: model.VMSpec{Memory: 64 << 20, VCPUs: 1, XML: someDocument}})
	admin := lead.permitted("admin", guard.All)
	alice := follower.permitted("alice", "host-devices")
	c.check(edited(t, alice, kinds[guard.HostDevices]))
	for range 5 {
		c.check(setIdentity(t, admin, "alice", guard.None))
		wantRefusal(t, edited(t, alice, kinds[guard.HostDevices]), rpc.Denied, "vm/web")
		c.check(setIdentity(t, admin, "alice", "host-devices"))
		c.check(edited(t, alice, kinds[guard.HostDevices]))
	}
}

// Operators of an earlier release do what they did, and the status says so until somebody has said what they may.
func TestOperatorsOfBeforeHaveWhatTheyHad(t *testing.T) {
	m := newCloud(t, 1).members[0]
	m.addVM(model.VM{ID: "v1", Name: "web", Desired: model.Stopped, Spec: model.VMSpec{Memory: 64 << 20, VCPUs: 1, XML: someDocument}})
	alice, admin := m.permitted("alice", ""), m.permitted("admin", guard.All)
	told := func() bool {
		status, err := alice.Status(t.Context(), connect.NewRequest(&berthv1.StatusRequest{}))
		return err == nil && slices.ContainsFunc(status.Msg.GetProblems(), func(line string) bool {
			return strings.Contains(line, "which permissions alice may use") && strings.Contains(line, "berth identity set NAME --permit none")
		})
	}
	shown := func() string {
		got, err := admin.GetIdentity(t.Context(), connect.NewRequest(&berthv1.GetIdentityRequest{Identity: "alice"}))
		m.cloud.check(err)
		return got.Msg.GetIdentity().GetPermit()
	}
	if err := edited(t, alice, kinds[guard.HostDevices]); err != nil || !told() || shown() != model.PermitUnsaid {
		t.Errorf("before: %v, told: %v, shown: %s", err, told(), shown())
	}
	m.cloud.check(setIdentity(t, alice, "alice", "host-paths")) // less is no gift
	if err := edited(t, alice, kinds[guard.HostDevices]); rpc.Detail(err).GetCode() != rpc.Denied || told() || shown() != "host-paths" {
		t.Errorf("since: %v, told: %v, shown: %s", err, told(), shown())
	}
}
