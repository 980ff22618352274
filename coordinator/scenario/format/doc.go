// Package format is the form of scenario files: the help that describes it, an example, and the export of a live cluster
// as a file of that form. Package scenario reads such files and runs them.
package format

import "strings"

// Schema describes the format of a scenario for people: it is the help of 'berth simulate'.
var Schema = strings.Replace(schema, "{measurements}\n", describeMeasurements(), 1)

const schema = `A scenario is one YAML document. Unknown fields are refused, with the line.

    format: berth/scenario/v1
    seed: 7              chance: the seeds of all decisions come from it (0 if left out)
    at: 2026-03-01T12:00:00Z   when it begins; time stands still unless a step
                         lets it pass
    interval: 1m         between two passes of the leader, where time passes
    bandwidth: 128M      bytes that one migration copies in a second
    estate:              an estate as 'berth apply' reads it, without its format:
                         clusters, groups, policies, customers, vdcs, vms, nodes ...
    nodes:               every node with what is known of it
      - name: hv1
        memory: 64G      physical memory
        cpus: 16
        available: 40G   memory really free; if left out, what running leaves
{measurements}
        ksm_saved: 1G    memory that page sharing saves now
        maintenance: true          and maintenance_reason: TEXT
        state: up        or suspect, unreachable, degraded, unheard
                         and state_reason: TEXT
        inventory_age: 20s         how old these figures are; 0s if left out
        telemetry_age: 1s
        pools: [{name: fast, capacity: 500G, available: 300G}]     libvirt's storage
                         pools; inactive: true; none if left out
        networks: [default, "bridge:br0"]    libvirt's networks and the host's
                         bridges; all that anything asks for if left out
        cpu_models: [Nehalem]      that guests can have here, and host_cpu: TEXT
        unknown: [load]  what is not known: inventory, domains, telemetry,
                         available, load, pools, networks
    running:             what has memory on a node
      - vm: web-1        a VM of the estate
        node: hv1
        resident: 1.5G   memory of the node that it has now
        cpu: 0.2         CPUs that it uses now
        ballooned: 256M  memory that its balloon holds back now
        most: 4G         memory that it can have while it runs, of a VM that was
                         made smaller meanwhile; left out: what it has
        customer_keys: [{name: Group, value: 1}]   as they were when it started;
                         if left out, what the estate says now
        owner: {customer: acme, billing_entity: mbe}   as they were too; an
                         owner that the estate does not have is a stranger
        sticky: [{name: DS, value: 1, weight: 30}]     copied at its last start
        home: hv1        node of its disk, in a cluster with local storage
        cpu_model: Nehalem         that it was started with; so is host_cpu
        moved_ago: 12m   when it last came to another node while it ran
        memory, vcpus    if they differ from the estate's
        young: true      it has just come and is not in the node's figures
        in_flight: true  an operation is about to bring it to this node
        stray: true      the node shows it and is not to run it
        state: running   or paused, paused-migration, crashed, shutoff, unknown, absent
      - foreign: batch   a domain that is not Berth's
        node: hv1
        memory: 8G
        vcpus: 4
    stopped:             VMs of the estate that have run before
      - vm: web-2        with sticky, home and moved_ago as above, and
        last: hv1        the node that it ran on last
    volumes:             what disks and images are, as far as they are made
      - {of: disk/web-root, pool: fast, nodes: [hv1], capacity: 20G}
                         nodes that have it, of a local pool; an image has
                         one row for each pool that it is in
    broken: {db: 12m}    groups, and since when their rules do not hold
    plans:               what the leader did before, newest first
      - {id: plan-1, kind: balance, policy: even, ended_ago: 12m,
         unit: VMs of standard deviation, before: 2, predicted: 1.5,
         observed: 1.5, observed_ago: 11m, created_ago: 13m,
         moves: [{vm: web-1, from: hv1, to: hv2, memory: 4G}]}
                         also state: failed or cancelled, cluster, node of a drain
                         or return, and result of a move: moved, failed, stays, left
                         or gone. 'berth export --scenario' writes them.
    ids:                 IDs where they are not the names; ties are drawn by the
      node/hv1: 3nqk7    IDs of the nodes. 'berth export --scenario' writes them.
    steps:               what happens, one after the other

Steps, each of which may have an expect:

    - start: web-2       in any cluster that it may go to; its disks are made
    - start: {vm: web-3, memory: 2G, vcpus: 1, vdc: prod, on: hv3, seed: 4}
                         a VM that the estate does not have is described as one in
                         an estate; on names the node, seed the decision's seed
    - stop: web-1        also: it is gone with its node
    - migrate: {vm: web-2, to: hv1}
    - migrate: {vm: web-2, best: true, if_better: 5}
    - drain: hv3         maintenance, and every VM to its best node, largest first
    - drain: {node: hv3, parallel: 1, bandwidth: 64M}
    - undrain: hv3       it takes VMs again
    - undrain: {node: hv3, return: true}       and what its drain moved away comes back
    - node_down: hv1     unreachable; it keeps its VMs until they are stopped
    - node_up: hv1
    - maintenance: {node: hv2, on: true, reason: new memory}
    - set: {node: hv1, available: 10G, load: 9}      new figures, all fields of nodes
    - set: {vm: web-1, resident: 2G, cpu: 1}
    - key: {on: customer/acme, name: X, value: 1, weight: 5, class: system}
    - key: {on: node/hv1, name: Premium, value: 1}
    - unset_key: {on: customer/acme, name: X}
    - capacity: {memory: 4G, vcpus: 2, vdc: prod}    how many more such VMs fit

    - apply: {groups: [{name: db, vms_rule: negative, vms: [db-1, db-2]}]}
                         a part of an estate, as 'berth apply' reads it
    - moved_by_hand: {vm: web-1, to: hv2}      past Berth, whether it fits or not
    - run: 30m           time passes
    - at: 5m             any step: time passes until so long after the beginning,
      node_down: hv1     and then it is done
    - new_leader: c2     another coordinator leads: what is in no record is lost

A VM that starts or moves takes its full size off the node's available memory at
once, and gives back what it has there when it stops or moves away; its CPU use
goes along. New figures of a node, given with set, replace that.

With a run, or a step that has at, time passes. Every interval the leader looks
at each cluster as a coordinator does, by the cluster's enforcement, balancing,
policy and groups: it repairs a rule or evens out, one move at a time, or proposes
the move where the mode is manual. A move takes as long as its memory at the
bandwidth, counts on both nodes until it is over, and then takes along what the VM
has and uses. Nodes that are up report all the time. What happened is in the log,
with the time since the beginning:

    0:06:00  repair    db-2: hv1 -> hv3: group db: db-1 and db-2 are both on hv1

What a step is to come to. Only what is given is compared:

    expect: {outcome: placed, node: hv2, round: 1, refused: {hv1: memory-physical},
             scores: {hv2: {system: 85, customer: 100}}}
                         outcome: placed, stay or refused; phase of a refusal:
                         constraint or system; node and refused may be lists
    expect: {moved: {web-1: hv2}, left: [batch]}     of a drain
                         or return, where no time passes
    expect: {moves: 1, where: {db-2: hv3}, holds: [db], broken: [web]}
                         of a run, when it is over: moves that Berth began since the
                         run before, where VMs are, groups whose rules hold or not
    expect: {proposed: {web-1: hv2}, idle: has no balancer}
                         of a run too: what waits for somebody to apply it, and a part
                         of why the last pass moved nothing
    expect: {more: 12, nodes: {hv1: 5}, runs_out_first: memory-promised}   of capacity

A step that cannot be (start of what runs, a node that is not there) ends the
scenario with its line.

A whole one: two VMs of one customer that keep apart.

` + Example

// Example is a whole scenario, in which all is as it expects.
const Example = `    format: berth/scenario/v1
    estate:
      customers: [{name: acme}]
      vdcs: [{name: prod, customer: acme}]
      vms:
        - name: db-1
          vdc: prod
          memory: 8G
          vcpus: 2
          keys: [{name: Replica, value: 1, weight: -100, class: customer}]
        - name: db-2
          vdc: prod
          memory: 8G
          vcpus: 2
          keys: [{name: Replica, value: 1, weight: -100, class: customer}]
    nodes:
      - {name: hv1, memory: 64G, cpus: 16}
      - {name: hv2, memory: 64G, cpus: 16}
    running:
      - {vm: db-1, node: hv1, resident: 3G, cpu: 0.5}
    steps:
      - start: db-2
        expect: {node: hv2, round: 1, scores: {hv1: {customer: -100}}}
      - node_down: hv2
      - capacity: {memory: 4G, vcpus: 1, vdc: prod}
        expect: {nodes: {hv2: 0}}
`
