package scenario

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"berth/coordinator/schema"
)

// head is a sound scenario of two nodes and two VMs, in nine lines.
const head = `format: berth/scenario/v1
estate:
  vms:
    - {name: web-1, memory: 2G, vcpus: 1}
    - {name: web-2, memory: 2G, vcpus: 1}
nodes:
  - {name: hv1, memory: 64G, cpus: 16}
  - {name: hv2, memory: 64G, cpus: 16}
running: [{vm: web-1, node: hv1}]
`

// placed is a scenario of a disk, an image and two shared pools, in five lines.
const placed = `format: berth/scenario/v1
estate:
  pools: [{name: a, cluster: default, scope: shared}, {name: b, cluster: default, scope: shared}]
  images: [{name: i}]
  disks: [{name: d, size: 1G}]
`

// pooled is a scenario of a disk and a local pool, in five lines.
const pooled = `format: berth/scenario/v1
estate:
  clusters: [{name: default}]
  pools: [{name: fast, cluster: default, scope: local}]
  disks: [{name: root, size: 1G}]
`

// A file that is not a scenario is refused with the line, the rule and what to do.
func TestBadFiles(t *testing.T) {
	for _, c := range []struct{ file, say string }{
		{"", "f.yaml:1: the file is empty"},
		{"# nothing\n", "f.yaml:1: the file is empty"},
		{"a: [\n", "f.yaml:1: did not find expected node content"},
		{"- a\n", "f.yaml:1: the scenario is a list, want a mapping"},
		{head + "---\nformat: x\n", "f.yaml:10: a second YAML document, want one"},
		{head + "--- {\n", "f.yaml:1: what follows the document is no YAML"},
		{"seed: 1\n", "f.yaml:1: the scenario has no format: begin with format: berth/scenario/v1"},
		{
			"format: berth/estate/v1\n",
			`f.yaml:1: format is "berth/estate/v1", which is not known here: that is an estate, which 'berth apply' reads; ` +
				`'berth export --scenario' writes a scenario`,
		},
		{
			head + "step: []\n",
			`f.yaml:10: unknown field "step" in the scenario: use at, bandwidth, broken, estate, format, ids, interval, nodes, plans, running, ` +
				`seed, steps, stopped`,
		},
		{head + "seed: 1\nseed: 2\n", `f.yaml:11: the scenario has seed twice, first on line 10`},
		{head + "seed: -1\n", `f.yaml:10: seed of the scenario is "-1"`},
		{head + "at: yesterday\n", `f.yaml:10: at of the scenario is "yesterday": give a moment such as 2026-03-01T12:00:00Z`},
		{head + "steps: {start: web-2}\n", "f.yaml:10: steps of the scenario is a mapping, want a list"},
		{head + "ids: {hv1: a}\n", `f.yaml:10: ids names "hv1"`},
		{head + "ids: {node/hv9: a}\n", "f.yaml:10: ids names node/hv9, which is not there"},
		{head + "ids: {node/hv1: hv2}\n", "f.yaml:8: node hv2 has the ID hv2 of another node"},
		{head + "ids: {vm/web-1: a, vm/web-2: a}\n", "vm/web-2 has the ID a, which vm/web-1 has"},
		{head + "ids: {vm/web-1: [a]}\n", "f.yaml:10: the ID of vm/web-1 is a list, want a text"},

		{"format: berth/scenario/v1\nestate:\n  vms: [{name: a}]\n", "f.yaml:3: vm/a: memory and vcpus are missing"},
		{"format: berth/scenario/v1\nestate:\n  vdcs: [{name: a, customer: b}]\n", "f.yaml:3: vdc/a: the customer b does not exist"},
		{
			"format: berth/scenario/v1\nestate:\n  nodes: [{name: hv1}]\n",
			"f.yaml:3: node/hv1: it has no entry under nodes of the scenario: tell what is known of it there",
		},

		{"format: berth/scenario/v1\nnodes:\n  - {memory: 1G, cpus: 1}\n", "f.yaml:3: a node has no name"},
		{"format: berth/scenario/v1\nnodes:\n  - {name: hv1, cpus: 1}\n", "f.yaml:3: node hv1 has no memory"},
		{"format: berth/scenario/v1\nnodes:\n  - {name: hv1, memory: 1G}\n", "f.yaml:3: node hv1 has no cpus"},
		{"format: berth/scenario/v1\nnodes: [hv1]\n", `f.yaml:2: a node is "hv1", want a mapping`},
		{"format: berth/scenario/v1\nnodes:\n  - {name: hv/1, memory: 1G, cpus: 1}\n", `f.yaml:3: node name "hv/1" is not valid`},
		{
			"format: berth/scenario/v1\nnodes:\n  - {name: hv1, memory: lots, cpus: 1}\n",
			`f.yaml:3: memory of node hv1 is "lots", want a size: give a size such as 512M or 4G`,
		},
		{"format: berth/scenario/v1\nnodes:\n  - {name: hv1, memory: 1G, cpus: 1.5}\n", `f.yaml:3: cpus of node hv1 is "1.5"`},
		{
			"format: berth/scenario/v1\nnodes:\n  - {name: hv1, memory: 1G, cpus: 1, load: .nan}\n",
			`f.yaml:3: load of node hv1 is ".nan": give a number of at least 0`,
		},
		{"format: berth/scenario/v1\nnodes:\n  - {name: hv1, memory: 1G, cpus: 1, load: NaN}\n", `f.yaml:3: load of node hv1 is "NaN"`},
		{"format: berth/scenario/v1\nnodes:\n  - {name: hv1, memory: 1G, cpus: 1, load: -1}\n", `f.yaml:3: load of node hv1 is "-1"`},
		{"format: berth/scenario/v1\nnodes:\n  - {name: hv1, memory: 1G, cpus: 1, load: }\n", "f.yaml:3: load of node hv1 is empty"},
		{
			"format: berth/scenario/v1\nnodes:\n  - {name: hv1, memory: 1G, cpus: 1, state: dead}\n",
			`f.yaml:3: state of node hv1 is "dead": use up, suspect, unreachable, degraded, unheard`,
		},
		{
			"format: berth/scenario/v1\nnodes:\n  - {name: hv1, memory: 1G, cpus: 1, maintenance: maybe}\n",
			`f.yaml:3: maintenance of node hv1 is "maybe": use true or false`,
		},
		{
			"format: berth/scenario/v1\nnodes:\n  - {name: hv1, memory: 1G, cpus: 1, telemetry_age: -2s}\n",
			`f.yaml:3: telemetry_age of node hv1 is "-2s"`,
		},
		{
			"format: berth/scenario/v1\nnodes:\n  - {name: hv1, memory: 1G, cpus: 1, unknown: [weather]}\n",
			`f.yaml:3: unknown of node hv1 has "weather": use inventory, domains`,
		},
		{
			"format: berth/scenario/v1\nnodes:\n  - {name: hv1, memory: 1G, cpus: 1, maintenance_reason: x}\n",
			"f.yaml:3: node hv1 has a maintenance_reason without maintenance",
		},
		{
			"format: berth/scenario/v1\nnodes:\n  - {name: hv1, memory: 1G, cpus: 1, state: up, state_reason: x}\n",
			"f.yaml:3: node hv1 has a state_reason without a state",
		},
		{
			"format: berth/scenario/v1\nnodes:\n  - &n {name: hv1, memory: 1G, cpus: 1}\n  - *n\n",
			"f.yaml:4: a node is a YAML alias, want a mapping",
		},
		{head + "stopped: [{vm: web-1}]\n", "f.yaml:10: VM web-1 is stopped and running"},
		{head + "stopped: [{vm: web-9}]\n", `f.yaml:10: there is no VM "web-9" in the estate`},
		{head + "stopped: [{vm: web-2, home: hv9}]\n", `f.yaml:10: home of web-2: there is no node "hv9"`},
		{head + "stopped: [{vm: web-2, sticky: [{name: A, value: 1}]}]\n", "f.yaml:10: sticky key A of VM web-2 has no weight"},
		{head + "stopped: [{vm: web-2, sticky: [{name: A, weight: 1}]}]\n", "key A has no value"},

		{strings.Replace(head, "node: hv1}]", "node: hv9}]", 1), `f.yaml:9: there is no node "hv9": name one of the nodes`},
		{strings.Replace(head, "{vm: web-1, node: hv1}", "{vm: web-9, node: hv1}", 1), `f.yaml:9: there is no VM "web-9" in the estate`},
		{strings.Replace(head, "{vm: web-1, node: hv1}", "{vm: web-1}", 1), "f.yaml:9: VM web-1 has no node"},
		{strings.Replace(head, "{vm: web-1, node: hv1}", "{node: hv1}", 1), "f.yaml:9: an entry of running has neither vm nor foreign"},
		{
			strings.Replace(head, "{vm: web-1, node: hv1}", "{vm: web-1, foreign: b, node: hv1, memory: 1G}", 1),
			"f.yaml:9: VM web-1 is both vm and foreign",
		},
		{strings.Replace(head, "{vm: web-1, node: hv1}", "{foreign: b, node: hv1}", 1), "f.yaml:9: domain b has no memory"},
		{
			strings.Replace(head, "{vm: web-1, node: hv1}", "{foreign: b, node: hv1, memory: 1G, sticky: []}", 1),
			`f.yaml:9: unknown field "sticky" in domain b`,
		},
		{
			strings.Replace(head, "{vm: web-1, node: hv1}", "{vm: web-1, node: hv1, ballooned: 3G}", 1),
			"f.yaml:9: the balloon of web-1 holds back 3 GiB of 2 GiB",
		},
		{
			strings.Replace(head, "{vm: web-1, node: hv1}", "{vm: web-1, node: hv1, ballooned: 5G, most: 4G}", 1),
			"f.yaml:9: the balloon of web-1 holds back 5 GiB of 4 GiB",
		},
		{
			strings.Replace(head, "{vm: web-1, node: hv1}", "{vm: web-1, node: hv1, most: 1G}", 1),
			"f.yaml:9: web-1 has 2 GiB, and at most 1 GiB: give the most that it can have while it runs",
		},
		{
			strings.Replace(head, "{vm: web-1, node: hv1}", "{vm: web-1, node: hv1}, {vm: web-1, node: hv2}", 1),
			"f.yaml:9: VM web-1 runs on hv1 already: say in_flight: true where it is to go",
		},
		{
			strings.Replace(head, "{vm: web-1, node: hv1}", "{vm: web-1, node: hv1}, {vm: web-1, node: hv1, in_flight: true}", 1),
			"f.yaml:9: web-1 is on hv1 twice",
		},
		{
			strings.Replace(head, "{vm: web-1, node: hv1}", "{vm: web-1, node: hv1, customer_keys: [{name: A, value: 1, class: system}]}", 1),
			`class of customer_keys of VM web-1 is "system": use customer, billing-entity`,
		},
		{
			strings.Replace(head, "{vm: web-1, node: hv1}", "{vm: web-1, node: hv1, owner: {client: a}}", 1),
			`unknown field "client" in owner of VM web-1`,
		},

		{head + "steps: [web-1]\n", `f.yaml:10: a step is "web-1", want a mapping`},
		{head + "steps: [{expect: {}}]\n", "f.yaml:10: a step says nothing that can be done: use one of start, stop, migrate"},
		{head + "steps: [{start: web-2, stop: web-1}]\n", "f.yaml:10: a step is start web-2 and also stop"},
		{head + "steps: [{start: web-2, expects: {}}]\n", `f.yaml:10: unknown field "expects" in start: use at, expect, start`},
		{head + "steps: [{start: }]\n", "f.yaml:10: start is empty, want a mapping"},
		{head + "steps: [{start: {on: hv1}}]\n", "f.yaml:10: start has no vm"},
		{head + "steps: [{start: {vm: new, memory: 1G}}]\n", "f.yaml:10: vm/new: memory and vcpus are missing"},
		{head + "steps: [{start: {vm: new, memory: 1G, vcpus: 1, colour: red}}]\n", `f.yaml:10: vm/new: unknown field "colour"`},
		{head + "steps: [{start: {vm: web-2, seed: x}}]\n", `f.yaml:10: seed of start is "x"`},
		{head + "steps: [{stop: [web-1]}]\n", "f.yaml:10: stop of stop is a list, want a text"},
		{head + "steps: [{stop: web-1, expect: {node: hv1}}]\n", "f.yaml:10: nothing can be expected of stop web-1"},
		{head + "steps: [{migrate: {vm: web-1, to: hv2, best: true}}]\n", "f.yaml:10: migrate web-1 names a node and asks for the best one"},
		{head + "steps: [{maintenance: {node: hv1, off: true}}]\n", `f.yaml:10: unknown field "off" in maintenance`},
		{head + "steps: [{set: {available: 1G}}]\n", "f.yaml:10: set has no node"},
		{head + "steps: [{set: {vm: web-1, available: 1G}}]\n", `f.yaml:10: unknown field "available" in set: use ballooned, cpu, resident, vm`},
		{head + "steps: [{key: {on: acme, name: A, value: 1}}]\n", `f.yaml:10: on of key is "acme": write on: KIND/NAME`},
		{head + "steps: [{key: {on: vm/web-1, value: 1}}]\n", "f.yaml:10: key has no name"},
		{head + "steps: [{key: {on: vm/web-1, name: A, value: .inf}}]\n", `f.yaml:10: value of key is ".inf": give a finite number`},
		{head + "steps: [{unset_key: {on: vm/web-1, name: A, class: own}}]\n", `f.yaml:10: class of unset_key is "own"`},
		{head + "steps: [{capacity: {vcpus: 1}}]\n", "f.yaml:10: capacity has no memory"},
		{head + "steps: [{capacity: {memory: 1G, vdc: a, cluster: b}}]\n", "f.yaml:10: capacity names a VDC and a cluster"},
		{head + "steps: [{capacity: {memory: 1G}, expect: {node: hv1}}]\n", `f.yaml:10: unknown field "node" in expect of how many more`},
		{
			head + "steps: [{start: web-2, expect: {outcome: good}}]\n",
			`f.yaml:10: outcome of expect of start web-2 is "good": use placed, stay, refused`,
		},
		{head + "steps: [{start: web-2, expect: {refused: {hv1: memory}}}]\n", `f.yaml:10: there is no constraint "memory": use running, `},
		{head + "steps: [{start: web-2, expect: {scores: {hv1: 85}}}]\n", `f.yaml:10: scores of hv1 is "85", want a mapping`},
		{head + "steps: [{drain: hv1, expect: {more: 1}}]\n", `f.yaml:10: unknown field "more" in expect of drain hv1: use left, moved`},

		{
			head + "volumes: [{of: disk/root, pool: fast}]\n",
			"f.yaml:10: the volume of disk/root has no capacity: give its size as the guest sees it",
		},
		{
			head + "volumes: [{of: disk/root, pool: fast, capacity: 1G}]\n",
			`f.yaml:10: there is no "disk/root" to be a volume: write disk/NAME or image/NAME of one in the estate`,
		},
		{head + "volumes: [{of: vm/web-1, pool: fast, capacity: 1G}]\n", `f.yaml:10: there is no "vm/web-1" to be a volume`},
		{
			"format: berth/scenario/v1\nestate:\n  disks: [{name: root, size: 1G}]\nvolumes: [{of: disk/root, pool: fast, capacity: 1G}]\n",
			`f.yaml:4: there is no pool "fast" for disk/root`,
		},
		{
			pooled + "volumes: [{of: disk/root, pool: fast, capacity: 1G}]\n",
			"f.yaml:6: disk/root is in the pool fast: name the nodes that have a volume of a local pool, and none of a shared one",
		},
		{
			placed + "volumes: [{of: image/i, pool: a, capacity: 1G}, {of: image/i, pool: b, capacity: 1G}, {of: image/i, pool: a, capacity: 1G}]\n",
			"image/i is a volume already: write each place of an image once, and one of a disk",
		},
		{
			placed + "volumes: [{of: disk/d, pool: a, capacity: 1G}, {of: disk/d, pool: b, capacity: 1G}]\n",
			"disk/d is a volume already: write each place of an image once, and one of a disk",
		},
		{pooled + "volumes: [{of: disk/root, pool: fast, capacity: 1G, nodes: [hv1]}]\n", `f.yaml:6: disk/root: there is no node "hv1"`},
		{
			"format: berth/scenario/v1\nnodes:\n  - {name: hv1, memory: 1G, cpus: 1, pools: [{name: fast}]}\n",
			"f.yaml:3: pool fast has no capacity: give its size, for instance capacity: 500G",
		},
		{head + "stopped: [{vm: web-2, last: hv9}]\n", `f.yaml:10: last node of web-2: there is no node "hv9"`},

		{
			head + "interval: 0s\n",
			`f.yaml:10: interval of the scenario is "0s", want 1s to 8784h0m0s: give whole seconds, minutes or hours, such as 90s, 30m or 2h`,
		},
		{head + "bandwidth: 1K\n", "f.yaml:10: bandwidth is 1 KiB: give what a migration copies in a second, for instance 128M"},
		{head + "steps: [{run: soon}]\n", `f.yaml:10: run of run is "soon", want 1s to`},
		{head + "steps: [{run: 100ms}]\n", `f.yaml:10: run of run is "100ms", want 1s to`},
		{head + "steps: [{run: 1000h}]\n", "f.yaml:1: 1000h0m0s in steps of 1m0s are 60000 passes, at most 50000 are made"},
		{
			head + "steps: [{run: 1h}, {at: 30m, stop: web-1}]\n",
			"f.yaml:10: at is 30m0s, and 1h0m0s have passed before it: put the steps in the order of their times",
		},
		{head + "steps: [{at: 5m}]\n", "f.yaml:10: a step says nothing that can be done"},
		{
			head + "steps: [{run: 1h, expect: {node: hv1}}]\n",
			`f.yaml:10: unknown field "node" in expect of time passes: 1:00:00: use broken, holds, idle, moves, proposed, where`,
		},
		{
			head + "steps: [{drain: hv1, expect: {left: []}}, {run: 1h}]\n",
			"f.yaml:10: drain hv1 takes time here: nothing has moved when it begins: expect it of a run after it, with where",
		},
		{head + "steps: [{drain: {node: hv1, bandwidth: 1}}]\n", "f.yaml:10: bandwidth of drain is 1 B"},
		{head + "steps: [{drain: {node: hv1, parallel: 0}}]\n", `f.yaml:10: parallel of drain is "0"`},
		{head + "steps: [{moved_by_hand: web-1}]\n", `f.yaml:10: moved_by_hand is "web-1", want a mapping`},
		{head + "steps: [{moved_by_hand: {vm: web-1}}]\n", "f.yaml:10: moved_by_hand has no to"},
		{head + "steps: [{apply: {groups: [{name: g, vms_rule: both}]}}]\n", "f.yaml:10: group/g: vms_rule"},
		{head + "broken: {db: 5m}\n", `f.yaml:10: there is no group "db": name one of the groups of the estate`},
		{head + "plans: [{kind: balance}]\n", "f.yaml:10: a plan has no id"},
		{head + "plans: [{id: p}]\n", "f.yaml:10: plan p has no kind: give what it was for"},
		{
			head + "plans: [{id: p, kind: balance, moves: [{vm: web-1, from: hv9}]}]\n",
			`f.yaml:10: there is no node "hv9": name one of the nodes, or leave the plan out`,
		},
	} {
		scenario, problems := Parse("f.yaml", []byte(c.file))
		err := schema.Problems(problems)
		if scenario != nil || err == nil {
			t.Errorf("%s\nis a scenario, want %q", c.file, c.say)
			continue
		}
		if !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s\nsaid %s\nwant %q", c.file, err, c.say)
		}
	}
}

// All that is wrong is told at once, in the order of the lines.
func TestAllProblemsAreTold(t *testing.T) {
	_, problems := Parse("f.yaml", []byte("format: berth/scenario/v1\nseed: y\nsteps: [{a: b}]\nz: 1\n"))
	var lines []int
	for _, p := range problems {
		lines = append(lines, p.Line)
	}
	if !reflect.DeepEqual(lines, []int{2, 3, 4}) {
		t.Errorf("problems %v", problems)
	}
	if _, problems := Parse("f.yaml", []byte("format: berth/estate/v1\nvms: []\nnodes: [{name: hv1, cluster: a}]\n")); len(problems) != 1 {
		t.Errorf("what is another document has mistakes of this one: %v", problems)
	}
	if _, problems := Parse("f.yaml", make([]byte, MaxScenario+1)); len(problems) != 1 || !strings.Contains(problems[0].Message, "at most") {
		t.Errorf("a file that is too large: %v", problems)
	}
}

// A step that cannot be ends the scenario, and names itself and its line.
func TestStepsThatCannotBe(t *testing.T) {
	for _, c := range []struct{ steps, say string }{
		{"[{start: web-9}]", `f.yaml:10: step 1, start web-9: there is no VM "web-9"`},
		{"[{start: web-1}]", `step 1, start web-1: VM "web-1" runs already, on hv1`},
		{"[{start: web-2}, {start: web-2}]", `step 2, start web-2: VM "web-2" runs already`},
		{"[{start: {vm: web-2, on: hv9}}]", `there is no node "hv9"`},
		{"[{start: {vm: web-2, memory: 1G, vcpus: 1}}]", `VM "web-2" is there already: leave out its description`},
		{"[{start: {vm: new, memory: 1G, vcpus: 1, vdc: prod}}]", "vm/new: the vdc prod does not exist"},
		{"[{stop: web-2}]", `VM "web-2" does not run`},
		{"[{stop: web-9}]", `there is no VM "web-9"`},
		{"[{migrate: web-2}]", `VM "web-2" does not run`},
		{"[{migrate: {vm: web-1, to: hv1}}]", `VM "web-1" runs on hv1 already`},
		{"[{migrate: {vm: web-1, to: hv9}}]", `there is no node "hv9"`},
		{"[{node_down: hv1}, {migrate: web-1}]", `step 2, migrate web-1 to the best node: node hv1, which runs VM "web-1", is not up`},
		{"[{node_down: hv1}, {drain: hv1}]", "node hv1 is not up: nothing can be moved away from it"},
		{"[{drain: hv9}]", `there is no node "hv9"`},
		{"[{node_up: hv9}]", `there is no node "hv9"`},
		{"[{maintenance: hv9}]", `there is no node "hv9"`},
		{"[{set: {node: hv9, load: 1}}]", `there is no node "hv9"`},
		{"[{set: {vm: web-2, cpu: 1}}]", `VM "web-2" does not run`},
		{"[{set: {vm: web-1, ballooned: 3G}}]", "the balloon of web-1 holds back 3 GiB of 2 GiB"},
		{"[{key: {on: customer/acme, name: A, value: 1}}]", `there is no customer "acme"`},
		{"[{key: {on: house/acme, name: A, value: 1}}]", `there is no house "acme"`},
		{"[{key: {on: vm/web-1, name: _A, value: 1}}]", "key _A as a system key is not valid"},
		{"[{key: {on: cluster/default, name: A, value: 1, class: customer}}]", "customer keys only on images"},
		{"[{key: {on: node/hv1, name: A, value: 1}}]", "a key that cluster/default declares"},
		{"[{key: {on: node/hv1, name: A, value: 1, weight: 3}}]", "a node's key has neither weight nor class"},
		{"[{unset_key: {on: vm/web-1, name: A}}]", `vm/web-1 has no system key "A"`},
		{"[{unset_key: {on: node/hv1, name: A}}]", "a key that cluster/default declares"},
		{"[{capacity: {memory: 1G, vdc: prod}}]", `there is no VDC "prod"`},
		{"[{capacity: {memory: 1G, cluster: east}}]", `there is no cluster "east"`},
		{"[{moved_by_hand: {vm: web-2, to: hv1}}]", `VM "web-2" does not run`},
		{"[{moved_by_hand: {vm: web-1, to: hv1}}]", `VM "web-1" runs on hv1 already`},
		{"[{moved_by_hand: {vm: web-1, to: hv9}}]", `there is no node "hv9"`},
		{"[{undrain: {node: hv1, return: true}}]", "nothing was drained from it: there is nothing to bring back"},
		{"[{node_down: hv2}, {drain: hv1}]", "no other node of cluster default is up and out of maintenance"},
		{"[{apply: {groups: [{name: g, vms: [web-9]}]}}]", "web-9"},
		{"[{apply: {clusters: [{name: default, policy: best}]}}]", "best"},
		{"[{drain: hv1}, {at: 1s, stop: web-1}]", `step 2, stop web-1: VM "web-1" is on its way to hv2`},
	} {
		scenario, problems := Parse("f.yaml", []byte(head+"steps: "+c.steps+"\n"))
		if err := schema.Problems(problems); err != nil {
			t.Errorf("%s: %v", c.steps, err)
			continue
		}
		report, err := scenario.Run()
		var failed *StepError
		if !errors.As(err, &failed) || !strings.HasPrefix(err.Error(), "f.yaml:10: step ") || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: said %v, want %q", c.steps, err, c.say)
			continue
		}
		if len(report.Steps) != failed.Step-1 {
			t.Errorf("%s: the report has %d steps before step %d", c.steps, len(report.Steps), failed.Step)
		}
	}
}

// A VM that an operation works on is left alone, as control does.
func TestVMsOnTheirWayAreLeftAlone(t *testing.T) {
	file := strings.Replace(
		head, "{vm: web-1, node: hv1}",
		"{vm: web-1, node: hv1}, {vm: web-1, node: hv2, in_flight: true}, {vm: web-2, node: hv2, in_flight: true}", 1,
	)
	for _, step := range []string{"start: web-2", "stop: web-1", "migrate: web-1"} {
		scenario, problems := Parse("f.yaml", []byte(file+"steps: [{"+step+"}]\n"))
		if err := schema.Problems(problems); err != nil {
			t.Fatal(err)
		}
		if _, err := scenario.Run(); err == nil || !strings.Contains(err.Error(), "is on its way to hv2") {
			t.Errorf("%s: %v", step, err)
		}
	}
}

// Nothing that is in a file makes reading or running it panic, and a scenario that was read runs the same way twice.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/scenario/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(head + "steps: [{start: &a {vm: x, memory: 1G, vcpus: 1, disks: *a}}]\n"))
	f.Add([]byte("format: berth/scenario/v1\n? {a: b}\n: c\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		scenario, problems := Parse("f.yaml", data)
		if (scenario == nil) == (len(problems) == 0) {
			t.Fatalf("a scenario %v with problems %v", scenario, problems)
		}
		for _, problem := range problems {
			if problem.Message == "" {
				t.Errorf("a problem without a message: %+v", problem)
			}
		}
		if scenario == nil {
			return
		}
		first, err := scenario.Run()
		second, again := scenario.Run()
		if (err == nil) != (again == nil) || !reflect.DeepEqual(first, second) {
			t.Errorf("two runs differ: %v, %v", err, again)
		}
	})
}
