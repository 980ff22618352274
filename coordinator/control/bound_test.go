package control

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/control/plans"
	"berth/coordinator/model"
	"berth/coordinator/operation"
)

var (
	virtiofs = model.Binding{Kind: model.BoundByFilesystem, What: "virtiofs", Name: "share0"}
	backup   = model.Binding{Kind: model.BoundByJob, What: "backup"}
	iso      = model.Binding{Kind: model.BoundByMedia, What: "cdrom", Name: "sda", Source: model.DiskSource{Path: "/srv/isos/x.iso"}}
)

// bind has a VM's node tell what keeps the VM there.
func (w *world) bind(vm model.VM, bindings ...model.Binding) {
	w.edit(vm.Holder, vm, func(d *model.Domain) { d.Bindings = append([]model.Binding{}, bindings...) })
}

// moves are the migrations that agents were ordered to begin.
func (w *world) moves() int {
	return len(w.agents.ordered(operation.ActMigrate)) + len(w.agents.ordered(operation.ActPrepare))
}

// What cannot move is refused with the reason and the way out, and never tried: not by its name, and not by a dry run of that.
func TestWhatCannotMoveIsNeverTried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.on("n1", "web1", 1)
		for _, tc := range []struct {
			binding    model.Binding
			says, next string
		}{
			{virtiofs, "virtiofs tag share0, which libvirt does not migrate", "shut it down"},
			{backup, "backup job of somebody else", "wait until it ends"},
			{iso, "/srv/isos/x.iso in its CD drive sda", "virsh change-media web1 sda --eject"},
		} {
			w.bind(vm, tc.binding)
			for _, request := range []lifecycle.MigrateVM{
				{VM: vm.ID, Node: "n2"}, {VM: vm.ID}, {VM: vm.ID, Node: "n2", DryRun: true}, {VM: vm.ID, Node: "n2", CopyStorage: true},
			} {
				_, err := w.MigrateVM(t.Context(), request)
				refusal, is := isRefusal(err)
				if !is || refusal.Code != lead.Conflict || !strings.Contains(refusal.Message, tc.says) || !strings.Contains(refusal.NextStep, tc.next) {
					t.Errorf("%+v: %v", request, err)
				}
			}
		}
		if w.moves() > 0 {
			t.Error("it was tried")
		}
		w.bind(vm)
		if _, err := w.MigrateVM(t.Context(), lifecycle.MigrateVM{VM: vm.ID, Node: "n2", Caller: "operator/test"}); err != nil {
			t.Errorf("nothing keeps it there any more: %v", err)
		}
	})
}

// A drain names what stays, in its dry run and at its end, moves the rest, and orders no move of what is bound.
func TestADrainLeavesWhatCannotMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		bound, free := w.on("n1", "web1", 1), w.on("n1", "web2", 1)
		w.bind(bound, virtiofs)
		w.bind(free)
		tried, err := w.DrainNode(t.Context(), plans.DrainNode{Node: "n1", DryRun: true, Caller: "operator/test"})
		if err != nil {
			t.Fatal(err)
		}
		plan := w.drain("n1")
		plan = w.ended(plan.ID, 10*time.Minute)
		for what, moves := range map[string][]model.Move{"the dry run": tried.Plan.Moves, "the drain": plan.Moves} {
			stays := 0
			for _, move := range moves {
				if move.Stays != (move.VM == bound.ID) {
					t.Errorf("%s: %+v", what, move)
				}
				if move.Stays && strings.Contains(move.Reason, "virtiofs tag share0, which libvirt does not migrate: shut it down to move it") {
					stays++
				}
			}
			if stays != 1 {
				t.Errorf("%s does not say why it stays: %+v", what, moves)
			}
		}
		for _, order := range w.agents.ordered(operation.ActMigrate) {
			if order.VM == bound.ID {
				t.Error("it was tried")
			}
		}
		if w.guest(bound.ID).Holder != "n1" || w.guest(free.ID).Holder == "n1" {
			t.Errorf("%+v and %+v", w.guest(bound.ID), w.guest(free.ID))
		}
	})
}

// The balancer looks for others.
func TestWhatCannotMoveIsNotProposed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		bound := map[string]bool{}
		for _, name := range []string{"web1", "web2", "web3", "web4"} {
			vm := w.on("n1", name, 1)
			if name < "web3" {
				w.bind(vm, backup)
				bound[vm.ID] = true
			}
		}
		w.evened(map[string]string{model.SettingBalancing: "manual"})
		plan, err := w.ProposePlan(t.Context(), plans.ProposePlan{Cluster: model.DefaultCluster, RequestID: "p", Caller: "operator/test"})
		if err != nil || len(plan.Moves) != 2 {
			t.Fatalf("%+v, %v", plan, err)
		}
		for _, move := range plan.Moves {
			if bound[move.VM] {
				t.Errorf("it proposes %+v", move)
			}
		}
	})
}

// A file in the folder of a pool that is declared as shared is seen by all nodes.
func TestMediaThatAllNodesSeeBindNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.on("n1", "web1", 1)
		w.bind(vm, iso)
		w.facts.change("n1", func(f *model.NodeFacts) { f.Pools = []model.PoolFacts{{Name: "isos", Active: true, Path: "/srv/isos"}} })
		if _, err := w.MigrateVM(t.Context(), lifecycle.MigrateVM{VM: vm.ID, Node: "n2"}); !isCode(err, lead.Conflict) {
			t.Fatalf("nobody has said that the folder is shared: %v", err)
		}
		w.put(model.Resource{ID: "p1", Kind: model.KindPool, Name: "isos", Settings: map[string]string{
			model.SettingScope: string(model.PoolShared),
		}})
		if _, err := w.MigrateVM(t.Context(), lifecycle.MigrateVM{VM: vm.ID, Node: "n2", Caller: "operator/test"}); err != nil {
			t.Error(err)
		}
	})
}

// What binds a running guest binds no start: the guest is off.
func TestAStoppedVMStartsAnywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.on("n1", "web1", 1)
		w.bind(vm, virtiofs)
		w.stops(vm)
		started, err := w.StartVM(t.Context(), lifecycle.StartVM{Name: "web1", Node: "n2", RequestID: "again", Caller: "operator/test"})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if w.guest(started.VM.ID).Holder != "n2" {
			t.Errorf("it is on %q", w.guest(started.VM.ID).Holder)
		}
	})
}

// A backup of somebody else holds a stop, until it ends or somebody says that it may break.
func TestABackupHoldsAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		stop := func(vm model.VM, change func(*lifecycle.ActOnVM)) error {
			request := lifecycle.ActOnVM{Kind: operation.Stop, VM: vm.ID, RequestID: w.NewID(), Caller: "operator/test"}
			change(&request)
			_, err := w.ActOnVM(t.Context(), request)
			synctest.Wait()
			return err
		}
		asIs := func(*lifecycle.ActOnVM) {}
		vm := w.on("n1", "web1", 1)
		w.bind(vm, backup)
		refusal, is := isRefusal(stop(vm, asIs))
		if !is || refusal.Code != lead.Conflict || !strings.Contains(refusal.NextStep, "'berth vm stop web1 --interrupt-backup'") ||
			refusal.Message != `VM "web1" is not stopped: it has a backup job of somebody else, which runs since some time ago: `+
				"what the backup has written is not whole if the guest is stopped" {
			t.Fatalf("got %v", refusal)
		}
		if len(w.agents.ordered(operation.ActStop)) > 0 {
			t.Error("its guest was asked to stop")
		}
		w.bind(vm, virtiofs) // what only binds it holds no stop
		if err := stop(vm, asIs); err != nil || w.guest(vm.ID).Holder != "" {
			t.Errorf("without a job: %v", err)
		}
		for name, change := range map[string]func(*lifecycle.ActOnVM){
			"web2": func(r *lifecycle.ActOnVM) { r.InterruptBackup = true }, "web3": func(r *lifecycle.ActOnVM) { r.Force = true },
		} {
			vm := w.on("n1", name, 1)
			w.bind(vm, backup)
			if err := stop(vm, change); err != nil || w.guest(vm.ID).Holder != "" {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
