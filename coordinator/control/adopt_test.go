package control

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/control/adoption"
	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	"berth/shared/domxml/guard"
	"berth/shared/units"
)

// foreign is a domain of 2 GiB that is not Berth's, which a node shows running.
func (w *world) foreign(node, uuid, name string, change ...func(*model.Domain)) model.Domain {
	domain := model.Domain{
		UUID: uuid, Name: name, State: model.DomainRunning, Memory: 2 * units.GiB, VCPUs: 2, Persistent: true, Since: time.Now().Add(-time.Hour),
	}
	for _, one := range change {
		one(&domain)
	}
	w.facts.change(node, func(f *model.NodeFacts) {
		f.Domains = append(f.Domains, domain)
		slices.SortFunc(f.Domains, func(a, b model.Domain) int { return strings.Compare(a.UUID, b.UUID) })
	})
	w.facts.describe(uuid, document(uuid, name, ""))
	return domain
}

func document(uuid, name, devices string) string {
	return fmt.Sprintf("<domain type='qemu'><name>%s</name><uuid>%s</uuid><memory "+
		"unit='GiB'>2</memory><vcpu>2</vcpu><devices>%s</devices></domain>",
		name, uuid, devices)
}

func (f *facts) describe(uuid, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.xml == nil {
		f.xml = map[string]string{}
	}
	f.xml[uuid] = text
}

const uuidA, uuidB = "aaaaaaaa-0000-4000-8000-000000000001", "bbbbbbbb-0000-4000-8000-000000000002"

func TestAdoptVMs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		mine := w.on("n2", "mine", 1)
		w.foreign("n1", uuidA, "db")
		w.foreign("n3", uuidB, "web", func(d *model.Domain) { d.Autostart = true })
		rows, err := w.AdoptVMs(t.Context(), adoption.AdoptVMs{All: true, DryRun: true, Caller: "operator/test"})
		if err != nil || len(rows) != 2 || rows[0].Problem != "" || rows[0].Operation.ID != "" || len(w.Store.Snapshot().VMs()) != 1 {
			t.Fatalf("dry run: %+v, %v", rows, err)
		}
		rows, err = w.AdoptVMs(t.Context(), adoption.AdoptVMs{All: true, RequestID: "all", Caller: "operator/test"})
		if err != nil || len(rows) != 2 || rows[0].Name != "db" || rows[0].Node != "node1" || rows[1].Name != "web" || rows[1].Node != "node3" {
			t.Fatalf("%+v, %v", rows, err)
		}
		if rows[0].Note != "" || !strings.HasPrefix(rows[1].Note, "its autostart is switched off") {
			t.Errorf("notes %q and %q", rows[0].Note, rows[1].Note)
		}
		synctest.Wait()
		vm := w.vm("db")
		if vm.ID != uuidA || vm.Holder != "n1" || vm.Epoch != 1 || vm.Desired != model.Running || !vm.Adopted || !vm.Persistent ||
			vm.Operation != "" ||
			vm.Spec.Memory != 2*units.GiB || vm.Spec.VCPUs != 2 || !strings.Contains(
			vm.Spec.XML, "<name>db</name>",
		) || !vm.StartedAt.Equal(time.Now().Add(-time.Hour)) {
			t.Errorf("vm %+v", vm)
		}
		if shown := w.facts.Facts("n1", time.Now()); !shown.Domains[0].Managed || shown.Domains[0].Epoch != 1 {
			t.Errorf("its node shows %+v", shown.Domains)
		}
		if events := w.told("vm.adopted"); len(events) != 2 {
			t.Errorf("told %+v", events)
		}
		for _, order := range w.agents.orders {
			if order.VM != mine.ID && order.Action != operation.ActAdopt {
				t.Errorf("a guest was touched: %+v", order)
			}
		}
		again, err := w.AdoptVMs(t.Context(), adoption.AdoptVMs{Domains: []string{"db"}, Caller: "operator/test"})
		if err != nil || len(again) != 1 || again[0].Problem != "it is VM db already" {
			t.Errorf("again: %+v, %v", again, err)
		}
		repeated, err := w.AdoptVMs(t.Context(), adoption.AdoptVMs{Domains: []string{"db"}, RequestID: "all", Caller: "operator/test"})
		if err != nil || len(repeated) != 1 || repeated[0].Operation.ID != rows[0].Operation.ID {
			t.Errorf("repeated: %+v, %v", repeated, err)
		}
		time.Sleep(time.Minute)
		if after := w.vm("db"); after.Condition.Text != "" || after.Holder != "n1" {
			t.Errorf("later: %+v", after)
		}
	})
}

// What runs counts before it is adopted, while it is and afterwards: in both ledgers, and once.
func TestAnAdoptedDomainCountsOnceAtAnyMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(operation.Order) *operation.Answer { return nil })
		defer w.lose()
		resident := 2 * units.GiB
		w.foreign("n1", uuidA, "db", func(d *model.Domain) { d.Resident = &resident })
		left := 6 * units.GiB
		w.facts.change("n1", func(f *model.NodeFacts) { f.Available = &left })
		counted := func(when string) {
			t.Helper()
			node := w.Inventory.View(w.Store.Snapshot(), time.Now()).Node("n1")
			if len(node.Allocations) != 1 || node.PromisedUsed != 2*units.GiB || node.PhysicalFree != left || node.VCPUsUsed != 2 {
				t.Errorf(
					"%s: promised %s, physically free %s, vCPUs %d, %+v", when, node.PromisedUsed, node.PhysicalFree, node.VCPUsUsed,
					node.Allocations,
				)
			}
		}
		counted("before")
		rows, err := w.AdoptVMs(t.Context(), adoption.AdoptVMs{Domains: []string{uuidA}, Caller: "operator/test"})
		if err != nil || rows[0].Problem != "" {
			t.Fatal(rows, err)
		}
		counted("meanwhile")
		w.Answered(operation.Answer{
			Operation: rows[0].Operation.ID, Node: "n1", Step: 1, Outcome: operation.OutcomeDone,
			Seen: operation.Observation{State: model.DomainRunning, Epoch: 1},
		})
		synctest.Wait()
		w.facts.carryOut(operation.Order{Node: "n1", VM: uuidA, Action: operation.ActAdopt, Epoch: 1})
		if w.vm("db").Holder != "n1" {
			t.Fatalf("vm %+v", w.vm("db"))
		}
		counted("afterwards")
	})
}

func TestWhatCannotBeAdoptedIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(w *world)
		words   []string // none: all
		vdc     string
		problem string
		next    string
	}{
		"off": {func(w *world) {
			w.foreign("n1", uuidA, "db", func(d *model.Domain) { d.State = model.DomainShutoff })
		}, []string{"db"}, "", "it is off", "virsh start db"},
		"a mark that no other can follow": {func(w *world) {
			w.foreign("n1", uuidA, "db", func(d *model.Domain) { d.Managed, d.Epoch = true, 1<<64-1 })
		}, nil, "", "its mark has epoch 18446744073709551615", "virsh metadata db"},
		"paused": {func(w *world) {
			w.foreign("n1", uuidA, "db", func(d *model.Domain) { d.State, d.Reason = model.DomainPaused, "user" })
		}, nil, "", "it is paused (user)", "virsh resume db"},
		"forgotten by libvirt": {func(w *world) {
			w.foreign("n1", uuidA, "db", func(d *model.Domain) { d.State, d.PID = model.DomainOrphan, 1234 })
		}, nil, "", "process 1234 on node1 runs it, and libvirt there does not list it", "kill 1234"},
		"being migrated": {func(w *world) {
			w.foreign("n1", uuidA, "db", func(d *model.Domain) { d.State = model.DomainPausedMigration })
		}, nil, "", "it is being migrated", "wait"},
		"twice": {func(w *world) {
			w.foreign("n1", uuidA, "db")
			w.foreign("n2", uuidA, "db")
		}, nil, "", "its UUID is on node2 too, running there", "virsh destroy"},
		"a definition elsewhere": {func(w *world) {
			w.foreign("n1", uuidA, "db")
			w.foreign("n2", uuidA, "db", func(d *model.Domain) { d.State = model.DomainShutoff })
		}, nil, "", "a definition with its UUID is on node2 too", "virsh undefine db"},
		"two of one name": {func(w *world) {
			w.foreign("n1", uuidA, "db")
			w.foreign("n2", uuidB, "db")
		}, nil, "", "another domain is called db, on node2", "by its UUID"},
		"a VM's name": {func(w *world) {
			w.on("n2", "db", 1)
			w.foreign("n1", uuidA, "db")
		}, []string{uuidA}, "", "another VM is called db", "rename one"},
		"a name that VMs cannot have": {func(w *world) { w.foreign("n1", uuidA, "my db!") }, nil, "", "my db!", "virsh domrename"},
		"secrets": {func(w *world) {
			w.foreign("n1", uuidA, "db")
			w.agents.does(func(_ string, task lead.Task) error {
				if task.Describe != "" {
					return &lead.TaskError{Code: "unsupported", Message: "its XML has a secret, a password of its graphics for instance"}
				}
				return nil
			})
		}, nil, "", "its XML has a secret", "virsh dumpxml db"},
		"no such thing": {func(w *world) {
			w.facts.change("n3", func(f *model.NodeFacts) { f.Liveness = model.Unreachable })
		}, []string{"db"}, "", "no node shows a domain of this name or UUID; not asked could be node3", "berth node show"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, obedient)
				defer w.lose()
				c.prepare(w)
				before := len(w.Store.Snapshot().VMs())
				w.foreign("n3", "cccccccc-0000-4000-8000-000000000003", "other")
				rows, err := w.AdoptVMs(t.Context(), adoption.AdoptVMs{Domains: c.words, All: c.words == nil, VDC: c.vdc, Caller: "operator/test"})
				if err != nil || len(rows) == 0 || !strings.Contains(rows[0].Problem, c.problem) || !strings.Contains(rows[0].NextStep, c.next) {
					t.Fatalf("got %+v, %v", rows, err)
				}
				synctest.Wait()
				taken := 0
				for _, row := range rows {
					if row.Problem == "" {
						taken++
					}
				}
				if want := len(w.Store.Snapshot().VMs()) - before; taken != want {
					t.Errorf("%d rows without a problem, and %d VMs more", taken, want)
				}
				if name != "secrets" && c.words == nil && w.vm("other").Holder != "n3" {
					t.Errorf("another one was held up: %+v", rows)
				}
			})
		})
	}
}

func TestAnAdoptedVMStaysWhereItsDisksMayBe(t *testing.T) {
	for name, c := range map[string]struct {
		devices string
		bound   bool
	}{
		"a file in no pool":       {"<disk type='file'><source file='/var/lib/db.img'/><target dev='vda'/></disk>", true},
		"a local pool":            {"<disk type='file'><source file='/fast/db.img'/><target dev='vda'/></disk>", true},
		"a volume of a local one": {"<disk type='volume'><source pool='fast' volume='db'/><target dev='vda'/></disk>", true},
		"a shared pool":           {"<disk type='file'><source file='/wide/db.img'/><target dev='vda'/></disk>", false},
		"beside a shared pool":    {"<disk type='file'><source file='/wide/../fast/db.img'/><target dev='vda'/></disk>", true},
		"a volume of it":          {"<disk type='volume'><source pool='wide' volume='db'/><target dev='vda'/></disk>", false},
		"a network": {
			"<disk type='network'><source protocol='rbd' name='p/db'/><target dev='vda'/></disk>", false,
		},
		"a CD": {
			"<disk type='file' device='cdrom'><source file='/iso'/><target dev='sda'/><readonly/></disk>", false,
		},
		"none": {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, obedient)
				defer w.lose()
				w.put(pools()...)
				w.facts.change("n1", func(f *model.NodeFacts) {
					f.PoolsKnown = true
					f.Pools = []model.PoolFacts{{Name: "fast", Active: true, Path: "/fast"}, {Name: "wide", Active: true, Path: "/wide"}}
				})
				w.foreign("n1", uuidA, "db")
				w.facts.describe(uuidA, document(uuidA, "db", c.devices))
				rows, err := w.AdoptVMs(t.Context(), adoption.AdoptVMs{All: true, Caller: "operator/test"})
				if err != nil || rows[0].Problem != "" || (rows[0].Note != "") != c.bound {
					t.Fatalf("%+v, %v", rows, err)
				}
				synctest.Wait()
				if vm := w.vm("db"); (vm.Bound == "n1") != c.bound || vm.Holder != "n1" {
					t.Errorf("bound to %q, holder %q", vm.Bound, vm.Holder)
				}
			})
		})
	}
}

// What is off is no domain that runs, so it is no failure to leave it.
func TestAllAreThoseThatRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		w.foreign("n1", uuidA, "db", func(d *model.Domain) { d.State = model.DomainShutoff })
		w.foreign("n1", uuidB, "web")
		rows, err := w.AdoptVMs(t.Context(), adoption.AdoptVMs{All: true, Caller: "operator/test"})
		if err != nil || len(rows) != 1 || rows[0].Name != "web" || rows[0].Problem != "" {
			t.Errorf("%+v, %v", rows, err)
		}
	})
}

// A mark that somebody has taken away is written again, under a new epoch, and so is one where the VM runs by other hands.
func TestAVMIsTakenBackByName(t *testing.T) {
	for name, change := range map[string]func(w *world, vm model.VM){
		"without its mark": func(w *world, vm model.VM) {
			w.edit("n1", vm, func(d *model.Domain) { d.Managed, d.Epoch = false, 0 })
		},
		"beside its definition elsewhere": func(w *world, vm model.VM) {
			w.shows("n2", vm, func(d *model.Domain) { d.State, d.Managed, d.Epoch = model.DomainShutoff, false, 0 })
			w.edit("n1", vm, func(d *model.Domain) { d.Managed, d.Epoch = false, 0 })
		},
		"elsewhere, without its mark": func(w *world, vm model.VM) {
			w.facts.change("n1", without(vm.ID))
			w.shows("n2", vm, func(d *model.Domain) { d.Managed, d.Epoch = false, 0 })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, obedient)
				defer w.lose()
				vm := w.on("n1", "web1", 1)
				time.Sleep(time.Minute)
				change(w, vm)
				time.Sleep(time.Minute)
				if w.vm("web1").Condition.Text == "" {
					t.Fatal("nobody was told")
				}
				rows, err := w.AdoptVMs(t.Context(), adoption.AdoptVMs{Domains: []string{"web1"}, Caller: "operator/test"})
				if err != nil || len(rows) != 1 || rows[0].Problem != "" {
					t.Fatalf("%+v, %v", rows, err)
				}
				time.Sleep(time.Minute)
				after := w.vm("web1")
				if after.Epoch != vm.Epoch+1 || after.Condition.Text != "" || after.Adopted || after.Holder == "" ||
					w.facts.Facts(after.Holder, time.Now()).Domains == nil {
					t.Errorf("vm %+v", after)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.on("n1", "web1", 1)
		w.facts.change("n1", func(f *model.NodeFacts) { f.Liveness = model.Unreachable })
		w.shows("n2", vm, nil)
		rows, err := w.AdoptVMs(t.Context(), adoption.AdoptVMs{Domains: []string{"web1"}, Caller: "operator/test"})
		if err != nil || !strings.Contains(rows[0].Problem, "node1 holds it, and has not shown") {
			t.Errorf("%+v, %v", rows, err)
		}
	})
}

// Nobody but Berth gives epochs, and somebody may have written a higher one all the same.
func TestAMarkThatSomebodyHasRaisedIsWrittenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.on("n1", "web1", 1)
		adopt := func() adoption.AdoptedVM {
			rows, err := w.AdoptVMs(t.Context(), adoption.AdoptVMs{Domains: []string{"web1"}, Caller: "operator/test"})
			if err != nil || len(rows) != 1 {
				t.Fatalf("%+v, %v", rows, err)
			}
			synctest.Wait()
			return rows[0]
		}
		w.edit("n1", vm, func(d *model.Domain) { d.Epoch = 77 })
		if row := adopt(); row.Problem != "" || row.Operation.Epoch != 78 {
			t.Errorf("%+v", row)
		}
		if after := w.vm("web1"); after.Epoch != 78 || after.LastEpoch != 78 || after.Holder != "n1" {
			t.Errorf("vm %+v", after)
		}
		w.edit("n1", vm, func(d *model.Domain) { d.Epoch = 1<<64 - 1 })
		if row := adopt(); !strings.Contains(row.Problem, "its mark has epoch") {
			t.Errorf("%+v", row)
		}
	})
}

// The next step that a row names is one that works.
func TestAVMThatCannotBeTakenBackSaysWhatToDo(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*model.Domain)
		problem string
		next    string
	}{
		"off": {func(d *model.Domain) { d.State = model.DomainShutoff }, "it is off", "berth vm start web1"},
		"forgotten by libvirt": {
			func(d *model.Domain) { d.State, d.PID = model.DomainOrphan, 1234 },
			"process 1234 on node1 runs it, and libvirt there does not list it", "kill 1234",
		},
		"renamed": {func(d *model.Domain) { d.Name, d.Epoch = "db1", 9 }, "it is VM web1 under another name", "virsh domrename db1 web1"},
		"paused": {
			func(d *model.Domain) { d.State, d.Reason, d.Epoch = model.DomainPaused, "user", 9 }, "it is paused (user)", "virsh resume web1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, obedient)
				defer w.lose()
				w.unheld("n1", c.change)
				rows, err := w.AdoptVMs(t.Context(), adoption.AdoptVMs{Domains: []string{"web1"}, Caller: "operator/test"})
				if err != nil || len(rows) != 1 || rows[0].Problem != c.problem || !strings.Contains(rows[0].NextStep, c.next) {
					t.Errorf("%+v, %v", rows, err)
				}
			})
		})
	}
}

func wantNext(t *testing.T, err error, next string) {
	t.Helper()
	var refused *lead.Error
	if !errors.As(err, &refused) || !strings.Contains(refused.NextStep, next) {
		t.Errorf("%v: want the next step %q", err, next)
	}
}

func TestReleaseVM(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.on("n1", "web1", 1)
		op, err := w.ActOnVM(t.Context(), lifecycle.ActOnVM{Kind: operation.Release, VM: vm.ID, RequestID: "r", Caller: "operator/test"})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if done := w.operation(op.ID); done.Result != operation.Done || len(w.Store.Snapshot().VMs()) != 0 {
			t.Errorf("%+v, %+v", done, w.Store.Snapshot().VMs())
		}
		shown := w.facts.Facts("n1", time.Now())
		if d := shown.Domain(vm.ID); d == nil || d.Managed || d.State != model.DomainRunning {
			t.Errorf("its node shows %+v", d)
		}
		if events := w.told("vm.released"); len(events) != 1 {
			t.Errorf("told %+v", events)
		}
		again, err := w.ActOnVM(t.Context(), lifecycle.ActOnVM{Kind: operation.Release, VM: vm.ID, RequestID: "r"})
		if err != nil || again.ID != op.ID {
			t.Errorf("repeated: %+v, %v", again, err)
		}
		// And back: its epochs go on.
		w.facts.describe(vm.ID, document(vm.ID, "web1", ""))
		if rows, err := w.AdoptVMs(t.Context(), adoption.AdoptVMs{All: true, Caller: "operator/test"}); err != nil || rows[0].Problem != "" {
			t.Fatal(rows, err)
		}
		synctest.Wait()
		if back := w.vm("web1"); back.Epoch != 2 || back.Holder != "n1" {
			t.Errorf("back: %+v", back)
		}
		if _, err := w.ActOnVM(t.Context(), lifecycle.ActOnVM{Kind: operation.Stop, VM: vm.ID}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		_, err = w.ActOnVM(t.Context(), lifecycle.ActOnVM{Kind: operation.Release, VM: vm.ID})
		refusedAs(t, "stopped", err, lead.Conflict, "does not run")
		wantNext(t, err, "berth vm delete web1")
	})
}

func TestResolveOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.on("n1", "web1", 1)
		op := operation.Operation{
			ID: "parked", Kind: operation.Migrate, VM: vm.ID, VMName: vm.Name, Source: "n1", SourceName: "node1", Target: "n2", TargetName: "node2",
			Epoch: 2, SourceEpoch: 1, Phase: operation.Judging, Result: operation.Parked, Message: "both nodes run it", CreatedAt: time.Now(),
		}
		before := vm.Revision
		vm.Operation, vm.LastEpoch = op.ID, 2
		w.store(state.Command{VMs: []model.VM{vm}, Operations: []operation.Operation{op}},
			state.Expectation{Table: state.VMs, ID: vm.ID, Revision: before}, state.Expectation{Table: state.Operations, ID: op.ID})
		w.shows("n2", vm, func(d *model.Domain) { d.Epoch, d.State = 2, model.DomainPaused })
		resolve := func(keep string) error {
			_, err := w.ResolveOperation(
				t.Context(), lifecycle.ResolveOperation{ID: "parked", Keep: keep, RequestID: "resolve " + keep, Caller: "operator/ann"},
			)
			return err
		}
		err := resolve("source")
		refusedAs(t, "the target has it", err, lead.Conflict, "node2 shows the copy that is not to be kept: it is paused there, epoch 2")
		wantNext(t, err, "'virsh destroy web1' on node2")
		refusedAs(t, "neither", resolve("none"), lead.Conflict, "node1 shows the copy")
		refusedAs(t, "a word", resolve("both"), lead.Invalid, "not said")
		w.facts.change("n1", func(f *model.NodeFacts) { f.Liveness = model.Unreachable })
		refusedAs(t, "a silent source", resolve("target"), lead.Conflict, "node1 does not tell")
		w.facts.change("n1", func(f *model.NodeFacts) { f.Liveness = model.Up })
		w.facts.change("n1", without(vm.ID))
		refusedAs(t, "a source that is gone", resolve("source"), lead.Conflict, "node1 does not run the copy")
		if err := resolve("target"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		after, done := w.vm("web1"), w.operation("parked")
		if done.Result != operation.Done || after.Holder != "n2" || after.Epoch != 3 || after.Operation != "" ||
			done.ResolvedBy != "operator/ann" {
			t.Errorf("%+v, %+v", done, after)
		}
		if events := w.told("operation.resolve"); len(events) != 1 || events[0].Caller != "operator/ann" ||
			events[0].Message != "keep target; node1 showed it absent, epoch 0; node2 showed it paused, epoch 2" {
			t.Errorf("told %+v", events)
		}
		if err := resolve("target"); err != nil {
			t.Errorf("repeated: %v", err)
		}
		refusedAs(t, "once more", resolve("none"), lead.Conflict, "has ended (done)")
	})
}

// Whoever may not put something onto a host does not adopt it either, where other nodes would be given it.
func TestNobodyAdoptsWhatItMayNotPutOntoAHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		w.foreign("n1", uuidA, "db")
		w.foreign("n1", uuidB, "web")
		w.facts.describe(uuidB, document(uuidB, "web", "<hostdev mode='subsystem' type='usb'/>"))
		adopt := func(lacks ...guard.Permission) map[string]adoption.AdoptedVM {
			rows, err := w.AdoptVMs(t.Context(), adoption.AdoptVMs{All: true, DryRun: true, Caller: "operator/bob", Lacks: lacks})
			if err != nil || len(rows) != 2 {
				t.Fatalf("%+v, %v", rows, err)
			}
			return map[string]adoption.AdoptedVM{rows[0].Name: rows[0], rows[1].Name: rows[1]}
		}
		if rows := adopt(guard.HostPaths); rows["web"].Problem != "" || rows["db"].Problem != "" {
			t.Errorf("without what they do not need: %+v", rows)
		}
		rows := adopt(guard.HostDevices)
		if web := rows["web"]; !strings.Contains(web.Problem, "operator/bob may not do that") || !strings.Contains(web.Problem, "hostdev") ||
			!strings.Contains(web.NextStep, "berth identity set operator/bob") || rows["db"].Problem != "" {
			t.Errorf("without: %+v", rows)
		}
	})
}
