// Package sim runs what-if scenarios: a file describes a cluster, what is known of its nodes, what runs there and what
// happens next, and the placement engine of the coordinators answers, without any daemon. Nothing leaves the package but
// the report; time stands still, and chance comes from the scenario's seed, so that the same file gives the same report.
//
// The world of a scenario is the one that the coordinators see: records and facts, joined by cluster.NewView. What they
// do around a decision is done here with the same functions: a VM's keys are compiled by package estate, what it shows to
// others is recorded when it starts, sticky keys are copied from the node, and a VM that has just come is charged its full
// size until new figures are told.
package sim

// Schema describes the format of a scenario for people: it is the help of 'berth simulate'.
const Schema = `A scenario is one YAML document. Unknown fields are refused, with the line.

    format: berth/scenario/v1
    seed: 7              chance: the seeds of all decisions come from it (0 if left out)
    at: 2026-03-01T12:00:00Z   when it takes place; time stands still
    estate:              an estate as 'berth apply' reads it, without its format:
                         clusters, customers, vdcs, offers, images, vms, nodes ...
    nodes:               every node with what is known of it
      - name: hv1
        memory: 64G      physical memory
        cpus: 16
        available: 40G   memory really free; if left out, what running leaves
        load: 2.5        load average over a minute; 0 if left out
        busy: 0.15       busy share of the CPUs, for a node whose load is unknown
        ksm_saved: 1G    memory that page sharing saves now
        maintenance: true          and maintenance_reason: TEXT
        state: up        or suspect, unreachable, degraded, unheard
                         and state_reason: TEXT
        inventory_age: 20s         how old these figures are; 0s if left out
        telemetry_age: 1s
        unknown: [load]  what is not known: inventory, domains, telemetry,
                         available, load
    running:             what has memory on a node
      - vm: web-1        a VM of the estate
        node: hv1
        resident: 1.5G   memory of the node that it has now
        cpu: 0.2         CPUs that it uses now
        ballooned: 256M  memory that its balloon holds back now
        customer_keys: [{name: Group, value: 1}]   as they were when it started;
                         if left out, what the estate says now
        owner: {customer: acme, billing_entity: mbe}   likewise; whoever the
                         estate does not have is a stranger
        sticky: [{name: DS, value: 1, weight: 30}]     copied at its last start
        home: hv1        node of its disk, in a cluster with local storage
        memory, vcpus    if they differ from the estate's
        young: true      it has just come and is not in the node's figures
        in_flight: true  an operation is about to bring it to this node
        stray: true      the node shows it and is not to run it
        state: running   or paused, paused-migration, crashed, unknown, absent
      - foreign: batch   a domain that is not Berth's
        node: hv1
        memory: 8G
        vcpus: 4
    stopped:             VMs of the estate that have run before
      - vm: web-2        with sticky and home as above
    ids:                 IDs where they are not the names; ties are drawn by the
      node/hv1: 3nqk7    IDs of the nodes. 'berth export --scenario' writes them.
    steps:               what happens, one after the other

Steps, each with an optional expect beside it:

    - start: web-2
    - start: {vm: web-3, memory: 2G, vcpus: 1, vdc: prod, on: hv3, seed: 4}
                         a VM that the estate does not have is described as one in
                         an estate; on names the node, seed the decision's seed
    - stop: web-1        also: it is gone with its node
    - migrate: {vm: web-2, to: hv1}
    - migrate: {vm: web-2, best: true, if_better: 5}
    - drain: hv3         maintenance, and every VM to its best node, largest first
    - node_down: hv1     unreachable; it keeps its VMs until they are stopped
    - node_up: hv1
    - maintenance: {node: hv2, on: true, reason: new memory}
    - set: {node: hv1, available: 10G, load: 9}      new figures, all fields of nodes
    - set: {vm: web-1, resident: 2G, cpu: 1}
    - key: {on: customer/acme, name: X, value: 1, weight: 5, class: system}
    - key: {on: node/hv1, name: Premium, value: 1}
    - unset_key: {on: customer/acme, name: X}
    - capacity: {memory: 4G, vcpus: 2, vdc: prod}    how many more such VMs fit

A VM that starts or moves takes its full size off the node's available memory at
once, and gives back what it has there when it stops or moves away; its CPU use
goes along. New figures of a node, given with set, replace that.

What a step is to come to. Only what is given is compared:

    expect: {outcome: placed, node: hv2, round: 1, refused: {hv1: memory-physical},
             scores: {hv2: {system: 85, customer: 100}}}
                         outcome: placed, stay or refused; phase of a refusal:
                         constraint or system; node and refused may be lists
    expect: {moved: {web-1: hv2}, left: [batch]}     of a drain
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
