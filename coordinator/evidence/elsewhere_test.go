package evidence

import (
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/operation"
)

// estate is the records of some nodes and one VM, with what the nodes have told.
type estate struct {
	Records

	nodes []model.Node
	vm    model.VM
	facts map[string]model.NodeFacts
	at    time.Time
	proof Proofs

	history   []operation.Operation
	resources []model.Resource
	others    []model.VM // that are on record, and that nothing else asks for
}

func (s *estate) Nodes() []model.Node { return slices.Clone(s.nodes) }
func (s *estate) SharedNodes() iter.Seq[*model.Node] {
	return func(yield func(*model.Node) bool) {
		for i := range s.nodes {
			if !yield(&s.nodes[i]) {
				return
			}
		}
	}
}
func (s *estate) VMs() []model.VM                       { return []model.VM{s.vm} }
func (s *estate) SharedVMs() iter.Seq[*model.VM]        { return sharedOf(s.VMs()) }
func (s *estate) VMsMarked(mark model.Mark) []model.VM  { return markedOf(s.VMs(), mark) }
func (s *estate) Operations() []operation.Operation     { return s.history }
func (s *estate) LiveOperations() []operation.Operation { return nil }
func (s *estate) LiveOperationOf(vm string) (operation.Operation, bool) {
	at := slices.IndexFunc(s.history, func(op operation.Operation) bool { return op.VM == vm && op.Phase != operation.Ended })
	if at < 0 {
		return operation.Operation{}, false
	}
	return s.history[at], true
}

func (s *estate) Resources(kind model.Kind) []model.Resource {
	return slices.DeleteFunc(slices.Clone(s.resources), func(r model.Resource) bool { return r.Kind != kind })
}

func (s *estate) Clusters() []model.Resource { return nil }
func (s *estate) Resource(id string) (model.Resource, bool) {
	at := slices.IndexFunc(s.resources, func(r model.Resource) bool { return r.ID == id })
	if at < 0 {
		return model.Resource{}, false
	}
	return s.resources[at], true
}

func (s *estate) VM(id string) (model.VM, bool) {
	for _, vm := range s.others {
		if vm.ID == id {
			return vm, true
		}
	}
	return s.vm, id == s.vm.ID
}

func (s *estate) Node(id string) (model.Node, bool) {
	at := slices.IndexFunc(s.nodes, func(n model.Node) bool { return n.ID == id })
	if at < 0 {
		return model.Node{}, false
	}
	return s.nodes[at], true
}

func (s *estate) SharedNode(id string) *model.Node {
	if node, known := s.Node(id); known {
		return &node
	}
	return nil
}

func (s *estate) SharedVM(id string) *model.VM {
	if vm, known := s.VM(id); known {
		return &vm
	}
	return nil
}

func (s *estate) SharedVMsWithDisk(name string) iter.Seq[*model.VM] {
	return sharedOf(slices.DeleteFunc(append(s.VMs(), s.others...), func(vm model.VM) bool {
		return !slices.Contains(operation.DiskNames(&vm), name)
	}))
}

func (s *estate) SharedVMsOn(node string) iter.Seq[*model.VM] { return sharedOf(s.VMsOn(node)) }

func (s *estate) survey() *Survey {
	return s.proof.Survey(Moment{Records: s, At: s.at, Facts: func(node string) model.NodeFacts { return s.facts[node] }})
}

func (s *estate) change(node string, change func(*model.NodeFacts)) {
	facts := s.facts[node]
	change(&facts)
	s.facts[node] = facts
}

// fenced tells that a node was proven to be off under its boot.
func (s *estate) fenced(node string) {
	at := slices.IndexFunc(s.nodes, func(n model.Node) bool { return n.ID == node })
	s.nodes[at].Fencing = model.Fencing{
		Phase: model.FencingProven, Boot: s.facts[node].Boot, Message: "its plug is off", EndedAt: s.at.Add(-time.Second),
	}
	s.proof[node] = s.at.Add(-time.Second)
	s.silent(node, time.Minute)
}

func (s *estate) silent(node string, lasts time.Duration) {
	s.change(node, func(f *model.NodeFacts) { f.Liveness, f.HeardAt = model.Unreachable, s.at.Add(-lasts) })
}

const vmID = "vm-1"

// running is an estate of four nodes that are heard. The first one has the VM, and shows it.
func running() *estate {
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	s := &estate{
		at: at, facts: map[string]model.NodeFacts{}, proof: Proofs{},
		vm: model.VM{
			ID: vmID, Name: "db", Holder: "n1", LastNode: "n1", Epoch: 3, Desired: model.Running, StartedAt: at.Add(-time.Hour),
			Whereabouts: model.Whereabouts{Boot: "n1-boot"},
		},
	}
	for _, id := range []string{"n1", "n2", "n3", "n4"} {
		s.nodes = append(s.nodes, model.Node{ID: id, Name: strings.Replace(id, "n", "node", 1), Boot: id + "-boot"})
		s.facts[id] = model.NodeFacts{
			Liveness: model.Up, HeardAt: at.Add(-time.Second), Boot: id + "-boot", Inventory: true, DomainsKnown: true,
			InventoryAt: at.Add(-20 * time.Second),
		}
	}
	s.shows("n1", model.DomainRunning, 3)
	return s
}

func (s *estate) shows(node string, state model.DomainState, epoch uint64) {
	s.change(node, func(f *model.NodeFacts) {
		f.Domains = []model.Domain{{UUID: vmID, Name: "db", State: state, Managed: true, Epoch: epoch}}
	})
}

// gone has the first node show the VM no more.
func (s *estate) gone() { s.lists("n1") }

// beside has somebody start the VM on a node after Berth has stopped it, and a leader see that.
func (s *estate) beside(node string) {
	s.gone()
	s.vm.Holder, s.vm.Desired = "", model.Stopped
	s.vm.Whereabouts = model.Whereabouts{Boot: node + "-boot", Missing: s.at.Add(-time.Minute)}
	s.shows(node, model.DomainRunning, 3)
}

// handedOver has the first node, which shows the VM still and is silent, hand it over to the second one, where it has ended.
func (s *estate) handedOver(at time.Time, epoch uint64) {
	s.vm.Holder, s.vm.LastNode, s.vm.MovedAt = "", "n2", at
	s.change("n1", func(f *model.NodeFacts) { f.Domains[0].Since = s.vm.StartedAt })
	s.silent("n1", 5*time.Second)
	s.history = append(s.history, operation.Operation{VM: vmID, Kind: operation.Migrate, Source: "n1", Target: "n2", Epoch: epoch})
}

// lists has a node show nothing.
func (s *estate) lists(node string) { s.change(node, func(f *model.NodeFacts) { f.Domains = nil }) }

// endedOn has a node tell that it has seen the VM's end so long ago.
func (s *estate) endedOn(node string, ago, watched time.Duration, whole bool) {
	s.change(node, func(f *model.NodeFacts) {
		f.Domains = nil
		f.Endings = map[string]model.Ending{vmID: {At: s.at.Add(-ago), RanSince: s.at.Add(-watched), Whole: whole}}
	})
}

// ended has the first node tell that it has seen the VM's end.
func (s *estate) ended(watched time.Duration, whole bool) {
	s.endedOn("n1", 5*time.Second, watched, whole)
}

func TestWhereAVMMayBe(t *testing.T) {
	for name, tc := range map[string]struct {
		is     func(*estate)
		may    bool
		again  bool
		runs   bool
		refuse string
		way    string // the nodes in the way, with their standings
		proof  string // a part of it
	}{
		"it runs": {is: func(*estate) {}, runs: true, way: "n1 shows it", proof: "runs on node1"},
		"its holder is silent": {
			is: func(s *estate) { s.silent("n1", time.Minute) }, way: "n1 silent",
		},
		"its holder cannot list": {
			is: func(s *estate) {
				s.change("n1", func(f *model.NodeFacts) { f.Liveness, f.DomainsKnown = model.Degraded, false })
			},
			way: "n1 cannot tell",
		},
		"its holder has not listed since it came": {
			is: func(s *estate) { s.gone(); s.vm.MovedAt = s.at.Add(-10 * time.Second) }, way: "n1 not yet told",
		},
		"its holder is off, and another has just connected": {
			is: func(s *estate) {
				s.fenced("n1")
				s.change("n3", func(f *model.NodeFacts) { f.Inventory, f.DomainsKnown = false, false })
			},
			way: "n3 not yet told",
		},
		"its holder is off": {
			is: func(s *estate) { s.fenced("n1") }, may: true, proof: "node1 is proven to be off",
		},
		"its holder is off, and another is silent": {
			is: func(s *estate) { s.fenced("n1"); s.silent("n3", 7*24*time.Hour) }, may: true, proof: "node1 is proven to be off",
		},
		"its holder is off, and was heard since": {
			is:  func(s *estate) { s.fenced("n1"); s.change("n1", func(f *model.NodeFacts) { f.HeardAt = s.at }) },
			way: "n1 contradicts it",
		},
		"its holder was seen without it before it was off": {
			is: func(s *estate) { s.gone(); s.fenced("n1"); s.silent("n3", time.Minute) }, way: "n3 silent",
		},
		"its holder was moving it when it was switched off": {
			is: func(s *estate) {
				s.change("n1", func(f *model.NodeFacts) { f.Domains[0].JobActive = true })
				s.fenced("n1")
				s.silent("n3", time.Minute)
			},
			way: "n3 silent",
		},
		"its holder was off when it was missing already": {
			is: func(s *estate) {
				s.vm.Whereabouts.Missing = s.at.Add(-time.Minute)
				s.fenced("n1")
				s.silent("n3", time.Minute)
			},
			way: "n3 silent",
		},
		"its end was not seen, and all are heard": {is: func(s *estate) { s.gone() }, again: true, refuse: "n1"},
		"its end was not seen, and one is silent": {
			is: func(s *estate) { s.gone(); s.silent("n3", time.Minute) }, way: "n3 silent",
		},
		"its end was not seen, and one is off": {
			is: func(s *estate) { s.gone(); s.fenced("n3") }, again: true, refuse: "n1",
		},
		"its end was not seen, and one was never heard": {
			is: func(s *estate) { s.gone(); s.facts["n3"] = model.NodeFacts{Liveness: model.Unreachable} }, way: "n3 silent",
		},
		"its end was not seen, and one has no libvirt": {
			is: func(s *estate) { s.gone(); s.change("n3", func(f *model.NodeFacts) { f.Liveness = model.Degraded }) }, way: "n3 cannot tell",
		},
		"its end was not seen, and one is off and answers": {
			is: func(s *estate) {
				s.gone()
				s.fenced("n3")
				s.change("n3", func(f *model.NodeFacts) { f.HeardAt = s.at })
			},
			way: "n3 contradicts it",
		},
		"somebody has moved it": {is: func(s *estate) { s.gone(); s.shows("n3", model.DomainRunning, 3) }, way: "n3 shows it"},
		"it ended under a whole watch": {
			is: func(s *estate) { s.ended(time.Hour, true); s.silent("n3", time.Minute) }, may: true, refuse: "n1", proof: "ended on node1",
		},
		"it ended under a whole watch, and a copy is shown": {
			is: func(s *estate) { s.ended(time.Hour, true); s.shows("n3", model.DomainPaused, 3) }, way: "n3 shows it",
		},
		"it ended before it came here last": {
			is: func(s *estate) {
				s.ended(time.Hour, true)
				s.change("n1", func(f *model.NodeFacts) { f.InventoryAt = s.at })
				s.silent("n3", time.Minute)
				s.vm.MovedAt = s.at.Add(-5 * time.Second)
			},
			way: "n3 silent",
		},
		"it ended under a watch that began before the silence": {
			is: func(s *estate) { s.ended(time.Minute, false); s.silent("n3", 10*time.Second) }, may: true, refuse: "n1", proof: "ended on node1",
		},
		"it ended under a watch that began in the silence": {
			is: func(s *estate) {
				s.ended(time.Minute, false)
				s.silent("n3", 2*time.Minute)
				s.change("n3", func(f *model.NodeFacts) { f.InventoryAt = s.at.Add(-2 * time.Minute) })
			},
			way: "n3 silent",
		},
		"it ended under a late watch, and one has not listed since": {
			is: func(s *estate) { s.ended(15*time.Second, false) }, way: "n2 not yet told, n3 not yet told, n4 not yet told",
		},
		"its host has booted anew": {
			is: func(s *estate) {
				s.gone()
				s.change("n1", func(f *model.NodeFacts) { f.Boot = "n1-next" })
				s.silent("n3", time.Minute)
			},
			may: true, refuse: "n1", proof: "booted anew",
		},
		"its host has booted anew, and was seen without it before": {
			is: func(s *estate) {
				s.gone()
				s.change("n1", func(f *model.NodeFacts) { f.Boot, f.Before = "n1-next", model.BootFacts{Boot: "n1-boot"} })
				s.silent("n3", time.Minute)
			},
			way: "n3 silent",
		},
		"its host has booted anew, and was seen with it before": {
			is: func(s *estate) {
				s.change("n1", func(f *model.NodeFacts) {
					f.Boot, f.Before, f.Domains = "n1-next", model.BootFacts{Boot: "n1-boot", Domains: f.Domains}, nil
				})
				s.silent("n3", time.Minute)
			},
			may: true, refuse: "n1", proof: "booted anew",
		},
		"its host has booted anew, and it was missing before": {
			is: func(s *estate) {
				s.gone()
				s.vm.Whereabouts.Missing = s.at.Add(-time.Minute)
				s.change("n1", func(f *model.NodeFacts) { f.Boot = "n1-next" })
				s.silent("n3", time.Minute)
			},
			way: "n3 silent",
		},
		"it is not known under which boot it ran": {
			is: func(s *estate) {
				s.gone()
				s.vm.Whereabouts.Boot = ""
				s.silent("n3", time.Minute)
			},
			way: "n3 silent",
		},
		"it is missing, and all have listed since": {
			is: func(s *estate) { s.gone(); s.vm.Whereabouts.Missing = s.at.Add(-time.Minute) }, may: true, refuse: "n1", proof: "every node",
		},
		"it is missing, and one has not listed since": {
			is: func(s *estate) {
				s.gone()
				s.vm.Whereabouts.Missing = s.at.Add(-time.Minute)
				s.change("n4", func(f *model.NodeFacts) { f.InventoryAt = s.at.Add(-2 * time.Minute) })
			},
			way: "n4 not yet told",
		},
		"nobody holds it": {
			is: func(s *estate) { s.gone(); s.vm.Holder = ""; s.silent("n3", time.Minute) }, may: true, proof: "proven, before",
		},
		"nobody holds it, and its last node has connected and not listed yet": {
			is: func(s *estate) {
				s.gone()
				s.vm.Holder = ""
				s.change("n1", func(f *model.NodeFacts) { f.DomainsKnown = false })
			}, way: "n1 not yet told",
		},
		"nobody holds it, and another node has connected anew": {
			is: func(s *estate) {
				s.gone()
				s.vm.Holder = ""
				s.change("n2", func(f *model.NodeFacts) { f.DomainsKnown = false })
			},
			may: true, proof: "proven, before",
		},
		"nobody holds it, and a node shows it": {
			is: func(s *estate) { s.gone(); s.vm.Holder = ""; s.shows("n3", model.DomainRunning, 3) }, way: "n3 shows it",
		},
		"nobody holds it, and a node that is silent showed it": {
			is: func(s *estate) {
				s.gone()
				s.vm.Holder = ""
				s.shows("n3", model.DomainRunning, 3)
				s.silent("n3", time.Minute)
			},
			way: "n3 silent",
		},
		"nobody holds it, and the node that has handed it over is silent, and did not tell": {
			is: func(s *estate) { s.handedOver(s.at.Add(-10*time.Second), 3) }, may: true, proof: "proven, before",
		},
		"nobody holds it, and the node that has handed it over has listed it since": {
			is: func(s *estate) { s.handedOver(s.at.Add(-30*time.Second), 3) }, way: "n1 silent",
		},
		"nobody holds it, and the node from which it was moved once is silent, and showed it": {
			is: func(s *estate) { s.handedOver(s.at.Add(-10*time.Second), 2) }, way: "n1 silent",
		},
		"nobody holds it, and it is missing": {
			is: func(s *estate) {
				s.gone()
				s.vm.Holder, s.vm.Whereabouts.Missing = "", s.at.Add(-time.Minute)
				s.silent("n3", time.Minute)
			},
			way: "n3 silent",
		},
		"nobody holds it, and it has left a node that showed it": {
			is: func(s *estate) { s.beside("n2"); s.lists("n2") }, again: true,
		},
		"nobody holds it, it has left a node that showed it, and one is silent": {
			is: func(s *estate) { s.beside("n2"); s.lists("n2"); s.silent("n3", time.Hour) }, way: "n3 silent",
		},
		"nobody holds it, and a node that showed it is silent": {
			is: func(s *estate) { s.beside("n2"); s.lists("n2"); s.silent("n2", time.Hour) }, way: "n2 silent",
		},
		"nobody holds it, and it ended on a node that showed it": {
			is: func(s *estate) {
				s.beside("n2")
				s.endedOn("n2", 5*time.Second, time.Minute, true)
				s.silent("n3", time.Hour)
			}, may: true, proof: "ended on node2, where it ran beside Berth",
		},
		"nobody holds it, and it ended on a node that has not watched all of it": {
			is: func(s *estate) {
				s.beside("n2")
				s.endedOn("n2", 5*time.Second, 15*time.Second, false)
				s.silent("n3", time.Minute)
			}, way: "n1 not yet told, n2 not yet told, n3 silent, n4 not yet told",
		},
		"nobody holds it, and it ended on a node before that showed it": {
			is: func(s *estate) {
				s.beside("n2")
				s.endedOn("n2", time.Hour, 2*time.Hour, true)
				s.silent("n3", time.Hour)
			}, way: "n3 silent",
		},
		"nobody holds it, and a node that showed it is off": {
			is: func(s *estate) { s.beside("n2"); s.fenced("n2"); s.silent("n3", time.Hour) }, may: true, proof: "node2, where it ran beside Berth",
		},
		"nobody holds it, and a node that showed it once is off": {
			is: func(s *estate) { s.beside("n2"); s.lists("n2"); s.fenced("n2"); s.silent("n3", time.Hour) }, way: "n3 silent",
		},
		"nobody holds it, and a node that showed it has booted anew": {
			is: func(s *estate) {
				s.beside("n2")
				s.lists("n2")
				s.change("n2", func(f *model.NodeFacts) { f.Boot = "n2-next" })
			}, again: true,
		},
		"a paused copy is to be discarded": {
			is: func(s *estate) {
				s.gone()
				s.vm.Holder, s.vm.Discards = "", []model.Discard{{Node: "n2", Epoch: 2}}
				s.shows("n2", model.DomainPaused, 2)
			},
			way: "n2 left there",
		},
		"a paused copy is left on a node that is silent": {
			is: func(s *estate) {
				s.gone()
				s.vm.Holder, s.vm.Discards = "", []model.Discard{{Node: "n2", Epoch: 2}}
				s.shows("n2", model.DomainPaused, 2)
				s.silent("n2", time.Minute)
			},
			may: true, proof: "before",
		},
		"its holder is no member any more": {
			is: func(s *estate) { s.vm.Holder = "n9" }, way: "n1 shows it, n9 silent",
		},
	} {
		s := running()
		tc.is(s)
		answer := s.survey().Of(&s.vm)
		var way []string
		for _, word := range answer.InTheWay() {
			way = append(way, word.Node+" "+string(word.Standing))
			if word.Why == "" || word.Next == "" || word.Name == "" {
				t.Errorf("%s: %+v is in the way and does not say why, or what ends it", name, word)
			}
		}
		want := tc.way
		if answer.May != tc.may || answer.Again != tc.again || answer.Runs != tc.runs || strings.Join(way, ", ") != want {
			t.Errorf("%s: may %t, again %t, runs %t, in the way %q; want %+v", name, answer.May, answer.Again, answer.Runs, way, tc)
		}
		if answer.Refuse != tc.refuse || !strings.Contains(answer.Proof, tc.proof) {
			t.Errorf("%s: %q has to refuse it, and the proof is %q; want %q, %q", name, answer.Refuse, answer.Proof, tc.refuse, tc.proof)
		}
		if missing, next := answer.Missing(); (missing == "") != (len(way) == 0 && !answer.Again) || (missing == "") != (next == "") {
			t.Errorf("%s: missing %q, next %q", name, missing, next)
		}
		if answer.May && len(way) > 0 || len(answer.Words) < len(s.nodes) {
			t.Errorf("%s: %+v", name, answer)
		}
	}
}

// A node that has just connected may show a VM with its first listing. It is not waited for for ever, and not for what no node can have.
func TestANodeThatNeverListsStopsNoStarts(t *testing.T) {
	stopped := func() *estate {
		s := running()
		s.vm.Holder, s.vm.Desired = "", model.Stopped
		s.lists("n1")
		s.change("n4", func(f *model.NodeFacts) {
			f.Inventory, f.DomainsKnown, f.InventoryAt, f.MetAt = false, false, time.Time{}, s.at.Add(-time.Second)
		})
		return s
	}
	for what, c := range map[string]struct {
		change func(*estate)
		may    bool
	}{
		"it has just connected": {func(*estate) {}, false},
		"it has connected again and again for half a minute": {func(s *estate) {
			s.change("n4", func(f *model.NodeFacts) { f.MetAt = s.at.Add(-listsWithin) })
		}, true},
		"it had the VM last": {func(s *estate) {
			s.vm.LastNode = "n4"
			s.change("n4", func(f *model.NodeFacts) { f.MetAt = s.at.Add(-time.Hour) })
		}, false},
		"the VM is new": {func(s *estate) { s.vm.Epoch, s.vm.LastNode = 0, "" }, true},
		"the VM is new, and has the ID of a document": {func(s *estate) {
			s.vm.Epoch, s.vm.LastNode, s.vm.Spec.XML = 0, "", "<domain/>"
		}, false},
	} {
		t.Run(what, func(t *testing.T) {
			s := stopped()
			c.change(s)
			if got := s.survey().Of(&s.vm); got.May != c.may {
				t.Errorf("may start: %t, %+v", got.May, got.InTheWay())
			}
		})
	}
}
