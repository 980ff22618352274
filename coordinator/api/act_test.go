package api

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// actBench is a member with two nodes and VM web on the first of them.
type actBench struct {
	*testing.T
	m     *coordinator
	asked []lifecycle.ActOnVM
	show  map[string]func(sequence uint64, domains ...*berthv1.Domain)
	at    uint64
}

func newActBench(t *testing.T) *actBench {
	b := &actBench{T: t, m: newCloud(t, 1).members[0], show: map[string]func(uint64, ...*berthv1.Domain){}, at: 1}
	for id, name := range map[string]string{"n1": "hv1", "n2": "hv2"} {
		b.m.addNode(id, name)
		session, err := b.m.inventory.OpenSession(id, &berthv1.Hello{NodeId: id, Incarnation: "boot-1"}, 1)
		b.m.cloud.check(err)
		b.show[id] = func(sequence uint64, domains ...*berthv1.Domain) {
			session.Report(&berthv1.SessionRequest{Sequence: sequence, Message: &berthv1.SessionRequest_Inventory{
				Inventory: &berthv1.InventoryReport{Node: &berthv1.NodeInventory{MemoryBytes: 1 << 30}, Domains: domains},
			}})
		}
	}
	spec := model.VMSpec{Memory: model.MinVMMemory, VCPUs: 1}
	b.m.addVM(model.VM{ID: "v1", Name: "web", Desired: model.Running, Holder: "n1", Epoch: 3, Spec: spec})
	b.m.control.act = func(request lifecycle.ActOnVM) (operation.Operation, error) {
		b.asked = append(b.asked, request)
		if request.VM == "v2" {
			return operation.Operation{}, &lead.Error{Code: lead.Conflict, Subject: "vm/mail", Message: "no", NextStep: "wait"}
		}
		return operation.Operation{ID: "o1", Kind: request.Kind, VMName: "web", SourceName: "hv1"}, nil
	}
	return b
}

// shows has a node show VM web.
func (b *actBench) shows(node string, state berthv1.DomainState, reason string) {
	b.at++
	b.show[node](b.at, &berthv1.Domain{Uuid: "v1", State: state, StateReason: reason, Managed: true, Epoch: 3})
}

func (b *actBench) act(request *berthv1.ActOnVMsRequest) []*berthv1.ActedVM {
	b.Helper()
	answer, err := b.m.operator().ActOnVMs(b.Context(), connect.NewRequest(request))
	if err != nil {
		b.Fatal(err)
	}
	return answer.Msg.GetActed()
}

func (b *actBench) refused(what string, one *berthv1.ActedVM, says, next string) {
	b.Helper()
	if one.GetOperation() != nil || !strings.Contains(one.GetMessage(), says) || !strings.Contains(one.GetError().GetNextStep(), next) {
		b.Errorf("%s: %v, want %q and %q", what, one, says, next)
	}
}

func pausing(vms ...string) *berthv1.ActOnVMsRequest {
	return &berthv1.ActOnVMsRequest{Vms: vms, RequestId: "r", Action: &berthv1.ActOnVMsRequest_Pause{Pause: &berthv1.PauseAction{}}}
}

func resuming(vms ...string) *berthv1.ActOnVMsRequest {
	return &berthv1.ActOnVMsRequest{Vms: vms, RequestId: "r", Action: &berthv1.ActOnVMsRequest_Resume{Resume: &berthv1.ResumeAction{}}}
}

func resetting(vms ...string) *berthv1.ActOnVMsRequest {
	return &berthv1.ActOnVMsRequest{Vms: vms, RequestId: "r", Action: &berthv1.ActOnVMsRequest_Reset_{Reset_: &berthv1.ResetAction{}}}
}

const (
	domainRuns   = berthv1.DomainState_DOMAIN_STATE_RUNNING
	domainPaused = berthv1.DomainState_DOMAIN_STATE_PAUSED
)

func TestActOnVMs(t *testing.T) {
	b := newActBench(t)
	b.m.addVM(model.VM{ID: "v2", Name: "mail", Desired: model.Running, Holder: "n1", Epoch: 1})
	b.shows("n1", domainRuns, "booted")
	request := pausing("web", "mail")
	request.DryRun, request.WhenBack = true, true
	acted := b.act(request)
	if len(acted) != 2 || acted[0].GetVm() != "web" || acted[0].GetOperation().GetKind() != "pause" || acted[1].GetVm() != "mail" {
		t.Fatalf("acted %v", acted)
	}
	b.refused("one of them", acted[1], "no", "wait")
	slices.SortFunc(b.asked, func(a, b lifecycle.ActOnVM) int { return strings.Compare(a.VM, b.VM) })
	want := lifecycle.ActOnVM{
		Kind: operation.Pause, VM: "v1", DryRun: true, WhenBack: true, RequestID: "r/v1", Caller: "operator/alice",
	}
	if !reflect.DeepEqual(b.asked[0], want) || b.asked[1].RequestID != "r/v2" {
		t.Errorf("control was asked %+v", b.asked)
	}
	b.asked = nil
	b.act(resetting("web"))
	if len(b.asked) != 1 || b.asked[0].Kind != operation.Reboot || !b.asked[0].Force {
		t.Errorf("control was asked %+v", b.asked)
	}
	for name, c := range map[string]struct {
		request *berthv1.ActOnVMsRequest
		code    string
		subject string
	}{
		"nothing":   {&berthv1.ActOnVMsRequest{Vms: []string{"web"}}, rpc.Invalid, "action"},
		"no VM":     {pausing(), rpc.Invalid, "vm"},
		"twice":     {pausing("web", "v1"), rpc.Invalid, "vm/web"},
		"a strange": {pausing("nobody"), rpc.NotFound, "vm/nobody"},
		"too many":  {pausing(make([]string, 1001)...), rpc.Invalid, "vm"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := b.m.operator().ActOnVMs(t.Context(), connect.NewRequest(c.request))
			wantRefusal(t, err, c.code, c.subject)
		})
	}
}

func TestWhatStandsStillIsNotPausedRestartedOrAskedToStop(t *testing.T) {
	b := newActBench(t)
	b.shows("n1", domainPaused, "i/o error")
	b.refused("no room", b.act(pausing("web"))[0], "a disk of it failed or found no room", "make room")
	b.refused("a reset", b.act(resetting("web"))[0], "is paused on node hv1", "'berth vm resume web'")
	vm, _ := b.m.store.Snapshot().VM("v1")
	expect := []state.Expectation{{Table: state.VMs, ID: "v1", Revision: vm.Revision}}
	vm.Paused = model.Stand{By: "operator/bob", At: time.Unix(0, 0)}
	b.m.propose(state.Command{Kind: "test", Expect: expect, VMs: []model.VM{vm}})
	b.shows("n1", domainPaused, "user")
	b.refused("again", b.act(pausing("web"))[0], "is paused by operator/bob since 1970-01-01 00:00:00 UTC already", "'berth vm resume web'")
	stop := &berthv1.StopVMRequest{Vm: "web"}
	_, err := b.m.operator().StopVM(t.Context(), connect.NewRequest(stop))
	wantRefusal(t, err, rpc.Conflict, "vm/web")
	if next := rpc.Detail(err).GetNextStep(); !strings.Contains(next, "'berth vm stop web --force'") {
		t.Errorf("next step %q", next)
	}
	stop.Force = true
	if _, err := b.m.operator().StopVM(t.Context(), connect.NewRequest(stop)); err != nil {
		t.Errorf("by force: %v", err)
	}
	shown, err := b.m.operator().GetVM(t.Context(), connect.NewRequest(&berthv1.GetVMRequest{Vm: "web"}))
	if err != nil {
		t.Fatal(err)
	}
	is := shown.Msg.GetVm()
	const says = "paused by operator/bob since 1970-01-01 00:00:00 UTC on hv1: 'berth vm resume web' lets it run"
	if is.GetState() != berthv1.VMState_VM_STATE_PAUSED || is.GetCondition() != says || is.GetPausedBy() != "operator/bob" {
		t.Errorf("shown as %v, %q", is.GetState(), is.GetCondition())
	}
	const stays = "is paused, and a migration would let it run: let it run with 'berth vm resume web'"
	if !slices.Equal(is.GetImmovable(), []string{stays}) {
		t.Errorf("what keeps it: %q", is.GetImmovable())
	}
}

// Two copies that run write to the same disks. So a guest is not let run while another node runs one.
func TestAGuestIsNotResumedBesideAnother(t *testing.T) {
	b := newActBench(t)
	b.shows("n1", domainPaused, "user")
	b.shows("n2", domainRuns, "booted")
	b.refused("another runs", b.act(resuming("web"))[0], "also runs on node hv2", "'virsh destroy web'")
	b.at++
	b.shows("n2", domainPaused, "user") // whoever lets it run has two
	b.refused("another stands still", b.act(resuming("web"))[0], "also runs on node hv2", "'virsh destroy web'")
	shown, err := b.m.operator().GetVM(t.Context(), connect.NewRequest(&berthv1.GetVMRequest{Vm: "web"}))
	if err != nil || !strings.Contains(shown.Msg.GetVm().GetCondition(), "also runs on hv2") {
		t.Errorf("it is shown as %q, %v", shown.Msg.GetVm().GetCondition(), err)
	}
	b.at++
	b.show["n2"](b.at)
	if acted := b.act(resuming("web")); acted[0].GetOperation().GetKind() != "resume" {
		t.Errorf("alone: %v", acted)
	}
	b.shows("n1", berthv1.DomainState_DOMAIN_STATE_PAUSED_MIGRATION, "")
	b.refused("a migration has", b.act(resuming("web"))[0], "by a migration", "'berth vm show web'")
	b.shows("n1", domainRuns, "booted")
	b.refused("it runs", b.act(resuming("web"))[0], "there is nothing to resume", "'berth vm show web'")
}

// What StopVM and RebootVM ask for of one VM is asked for of several alike, and what is refused of one is told of that one.
func TestSeveralAreStopped(t *testing.T) {
	b := newActBench(t)
	b.m.addVM(model.VM{ID: "v2", Name: "mail", Desired: model.Running, Holder: "n1", Epoch: 1, Spec: model.VMSpec{Memory: 1 << 20, VCPUs: 1}})
	stop := &berthv1.StopAction{Force: true, GraceSeconds: 1.5, InterruptBackup: true}
	acted := b.act(&berthv1.ActOnVMsRequest{Vms: []string{"web", "mail"}, Action: &berthv1.ActOnVMsRequest_Stop{Stop: stop}})
	if acted[0].GetOperation() == nil || len(b.asked) != 2 {
		t.Fatalf("stopped: %v, %+v", acted, b.asked)
	}
	b.refused("the other", acted[1], "no", "wait")
	for _, asked := range b.asked {
		if asked.Kind != operation.Stop || !asked.Force || asked.Grace != 1500*time.Millisecond || !asked.InterruptBackup {
			t.Errorf("control was asked %+v", asked)
		}
	}
	b.act(&berthv1.ActOnVMsRequest{Vms: []string{"web"}, Action: &berthv1.ActOnVMsRequest_Reboot{Reboot: &berthv1.RebootAction{}}})
	if asked := b.asked[2]; asked.Kind != operation.Reboot || asked.Force {
		t.Errorf("control was asked %+v", asked)
	}
	stop = &berthv1.StopAction{GraceSeconds: -1}
	b.refused("a time below nothing", b.act(&berthv1.ActOnVMsRequest{
		Vms: []string{"web"}, Action: &berthv1.ActOnVMsRequest_Stop{Stop: stop},
	})[0], "grace time of -1 s", "--force")
	b.shows("n1", domainPaused, "user")
	b.act(pausing("web"))
}

func TestASizeIsNamedBeforeItIsChanged(t *testing.T) {
	b := newActBench(t)
	resize := func(memory int64, vcpus int32) *berthv1.ActedVM {
		action := &berthv1.ActOnVMsRequest_Resize{Resize: &berthv1.ResizeAction{MemoryBytes: memory, Vcpus: vcpus}}
		return b.act(&berthv1.ActOnVMsRequest{Vms: []string{"web"}, Action: action})[0]
	}
	acted := resize(2<<30, 4)
	if acted.GetOperation() == nil || acted.GetDevice() != "memory 2 GiB, 4 vCPUs" || b.asked[0].Kind != operation.Resize ||
		b.asked[0].Size != (model.Size{Memory: 2 << 30, VCPUs: 4}) {
		t.Errorf("resize: %v, %+v", acted, b.asked)
	}
	b.refused("nothing", resize(0, 0), "no size is given", "how many vCPUs")
	b.refused("too little", resize(1, 0), "1 MiB", "'berth vm set --help'")
	if len(b.asked) != 1 {
		t.Errorf("control was asked %+v", b.asked)
	}
}

func TestDevicesAreNamedBeforeTheyAreChanged(t *testing.T) {
	b := newActBench(t)
	b.at++
	b.show["n1"](b.at, &berthv1.Domain{
		Uuid: "v1", State: domainRuns, Managed: true, Epoch: 3, Devices: &berthv1.Devices{Devices: []*berthv1.Device{
			{Kind: "disk", Key: "vda", Source: &berthv1.DiskSource{Path: "/srv/web"}},
			{Kind: "disk", Key: "sda", Source: &berthv1.DiskSource{Path: "/srv/cd.iso"}, Media: true},
		}},
	})
	attach := &berthv1.AttachAction{Device: &berthv1.AttachAction_Disk{Disk: &berthv1.Disk{Pool: "fast", Volume: "data", Format: "raw"}}}
	acted := b.act(&berthv1.ActOnVMsRequest{Vms: []string{"web"}, Action: &berthv1.ActOnVMsRequest_Attach{Attach: attach}})[0]
	if acted.GetOperation() == nil || acted.GetDevice() != "disk vdb (fast/data)" {
		t.Errorf("attach: %v", acted)
	}
	if asked := b.asked[0]; asked.Kind != operation.Attach || len(asked.Edits) != 1 || asked.Edits[0].Source.Volume != "data" {
		t.Errorf("control was asked %+v", asked)
	}
	detach := func(device string) *berthv1.ActedVM {
		action := &berthv1.ActOnVMsRequest_Detach{Detach: &berthv1.DetachAction{Device: device}}
		return b.act(&berthv1.ActOnVMsRequest{Vms: []string{"web"}, Action: action})[0]
	}
	if acted := detach("vda"); acted.GetDevice() != "disk vda (/srv/web)" {
		t.Errorf("detach: %v", acted)
	}
	b.refused("a disk that is not there", detach("vdz"), "it has vda (/srv/web), sda (/srv/cd.iso)", "'berth vm show web'")
	b.refused("an interface that is not there", detach("52:54:00:00:00:01"), "it has none", "'berth vm show web'")
	media := func(target, path string) *berthv1.ActedVM {
		action := &berthv1.ActOnVMsRequest_Media{Media: &berthv1.MediaAction{Target: target, Path: path}}
		return b.act(&berthv1.ActOnVMsRequest{Vms: []string{"web"}, Action: action})[0]
	}
	if acted := media("", ""); acted.GetDevice() != "disk sda (empty)" {
		t.Errorf("eject: %v", acted)
	}
	volume := &berthv1.ActOnVMsRequest_Media{Media: &berthv1.MediaAction{Pool: "isos", Volume: "rescue.iso"}}
	acted = b.act(&berthv1.ActOnVMsRequest{Vms: []string{"web"}, Action: volume})[0]
	last := b.asked[len(b.asked)-1]
	if acted.GetDevice() != "disk sda (isos/rescue.iso)" || !strings.Contains(last.Edits[0].XML, `pool="isos"`) {
		t.Errorf("a volume: %v, %+v", acted, last)
	}
	volume.Media.Volume = ""
	b.refused("a pool alone", b.act(&berthv1.ActOnVMsRequest{Vms: []string{"web"}, Action: volume})[0], "volume", "'berth vm media --help'")
	b.refused("what is in it", media("sda", "/srv/cd.iso"), "has /srv/cd.iso in its drive sda already", "'berth vm show web'")
	b.refused("no drive", media("vda", ""), "has no such drive for media: it has sda (/srv/cd.iso)", "--target")
	b.refused("a path that is none", media("", "cd.iso"), "absolute", "'berth vm media --help'")
	b.shows("n1", domainRuns, "booted")
	b.refused("nothing is told", detach("vda"), "does not tell which devices", "'berth node show hv1'")
}

// A new disk has a record of its own for each VM, and its guest gets the device that is made of it.
func TestNewDisksAreAskedFor(t *testing.T) {
	b := newActBench(t)
	b.m.declare(model.Resource{
		ID: "p1", Kind: model.KindPool, Name: "fast", Links: map[string]string{"cluster": model.DefaultCluster},
		Settings: map[string]string{model.SettingScope: string(model.PoolLocal), model.SettingPoolSource: "vg"},
	})
	b.m.declare(model.Resource{ID: "d0", Kind: model.KindDisk, Name: "web-disk1", Settings: map[string]string{"size": "1073741824"}})
	b.m.addVM(model.VM{ID: "v3", Name: "rest", Desired: model.Stopped, Spec: model.VMSpec{Memory: model.MinVMMemory, VCPUs: 1}})
	b.at++
	b.show["n1"](b.at, &berthv1.Domain{
		Uuid: "v1", State: berthv1.DomainState_DOMAIN_STATE_RUNNING, Managed: true, Epoch: 3, Devices: &berthv1.Devices{},
	})
	ask := func(disk *berthv1.NewDisk, vms ...string) []*berthv1.ActedVM {
		b.asked = nil
		return b.act(&berthv1.ActOnVMsRequest{Vms: vms, Action: &berthv1.ActOnVMsRequest_Attach{
			Attach: &berthv1.AttachAction{Device: &berthv1.AttachAction_NewDisk{NewDisk: disk}},
		}})
	}
	acted := ask(&berthv1.NewDisk{Pool: "fast", SizeBytes: 2 << 30, Keep: true}, "web", "rest")
	if len(b.asked) != 2 || acted[0].GetDevice() != "disk vda (web-disk2, 2 GiB in pool fast)" ||
		acted[1].GetDevice() != "disk rest-disk1 (2 GiB in pool fast)" || len(acted[1].GetFollows()) != 1 {
		t.Fatalf("%+v, told %v", b.asked, acted)
	}
	for _, asked := range b.asked {
		disk := asked.NewDisk
		if disk.Links["pool"] != "p1" || disk.Settings["size"] != "2147483648" || disk.Settings["keep"] != "true" {
			t.Errorf("a disk %+v", disk)
		}
		if asked.VM == "v1" && (len(asked.Edits) != 1 || asked.Edits[0].Source.Text() != "vg/berth-"+disk.ID+".qcow2" ||
			!strings.Contains(asked.Edits[0].XML, "<serial>"+disk.ID+"</serial>")) {
			t.Errorf("edits %+v of disk %s", asked.Edits, disk.ID)
		}
	}
	b.refused("one name for two", ask(&berthv1.NewDisk{Name: "data", Pool: "fast", SizeBytes: 2 << 30}, "web", "rest")[0],
		"there is one name for all", "leave the name out")
	b.refused("a name that is taken", ask(&berthv1.NewDisk{Name: "web-disk1", Pool: "fast", SizeBytes: 2 << 30}, "web")[0],
		"exists already", "choose another name")
	b.refused("no such pool", ask(&berthv1.NewDisk{Pool: "slow", SizeBytes: 2 << 30}, "web")[0], `"slow"`, "berth pool list")
	b.refused("no size", ask(&berthv1.NewDisk{Pool: "fast"}, "web")[0], "size", "")
	b.refused("a bus that there is not", ask(&berthv1.NewDisk{Pool: "fast", SizeBytes: 2 << 30, Bus: "ide"}, "web")[0], "ide", "")
}
