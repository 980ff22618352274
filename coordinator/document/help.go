package document

import (
	"fmt"
	"strings"

	"berth/coordinator/schema"
)

// Schema describes the documents of 'berth apply' for people. What it says of kinds comes from their table.
func Schema() string {
	var b strings.Builder
	b.WriteString(schemaHead)
	for _, form := range schema.Forms() {
		fmt.Fprintf(&b, "\n%s: %s\n", form.Plural, form.Doc)
		for _, link := range form.Links {
			line(&b, link.Name, link.Doc, link.Required, "")
		}
		for _, setting := range form.Settings {
			line(&b, setting.Name, setting.Doc, setting.Required, setting.Default)
		}
		for _, members := range form.Members {
			line(&b, members.Name, members.Doc, false, "")
		}
		for _, list := range form.Lists {
			line(&b, list.Name, list.Doc, false, "")
		}
		if form.HasNodeKeys {
			line(&b, "node_keys", "keys that all its nodes have: {name, default, sticky, weight}", false, "")
			line(&b, "keys", "see below; the special keys have their default weights unless they are given others, 0 for none", false, "")
		}
	}
	b.WriteString("\nnodes: what is declared of nodes that have joined; a document creates and deletes none\n")
	fieldLines(&b, schema.Node)
	b.WriteString("\nvms: virtual machines; new ones are stopped, and what changes of one that runs takes\neffect at its next start\n")
	fieldLines(&b, schema.VM)
	b.WriteString(schemaTail)
	return b.String()
}

// fieldLines describes the fields of a VM or a node. Names of a place stand together.
func fieldLines[R any](b *strings.Builder, fields []schema.Field[R]) {
	for i := range fields {
		name := strings.Join(schema.Names(fields[i:i+1]), ", ")
		line(b, name, fields[i].Doc, fields[i].Required, "")
	}
}

// line describes one field, wrapped like what is written by hand here.
func line(b *strings.Builder, name, doc string, required bool, byDefault string) {
	if required {
		doc += "; required"
	}
	if byDefault != "" {
		doc += "; " + byDefault + " by default"
	}
	const width, most = 20, 88
	fmt.Fprintf(b, "  %-*s", width, name)
	at := most // a long name has a line of its own
	if len(name) <= width {
		at = 2 + width
	}
	for word := range strings.FieldsSeq(doc) {
		if at+1+len(word) > most {
			fmt.Fprintf(b, "\n  %*s", width, "")
			at = 2 + width
		}
		b.WriteString(" " + word)
		at += 1 + len(word)
	}
	b.WriteByte('\n')
}

const schemaHead = `A document declares an estate in YAML. It begins with

  format: ` + Format + `

and has a list for each kind of thing; a list that is left out declares nothing.
Each entry has a name, unique among its kind, and names what it links to. An entry
says all of what it names: a link, setting or key that it leaves out is unset. What
no entry names stays as it is; with --prune it is deleted, but never a node. A
document is applied whole or not at all, and applied again it changes nothing.
Unknown fields, YAML anchors, aliases and tags are refused.
`

const schemaTail = `
Everything but zones, pods, pools, nodes, policies and groups may have keys, each
{name, value, weight, class}:
  value                a number; near ones attract, 1 and more apart is as good as absent
  weight               how much, negative to repel; left out or 0: no part in placement
  class                system (left out), billing-entity or customer; customer keys only
                       on images, VMs, disks, networks and NICs
A name that begins with _ asks for a node key of that name, not as a system key. #RAM,
#CPU and #LOAD are what nodes have by themselves, from 0 (idle) to 1, and system keys.

Example:

  format: ` + Format + `
  policies:
    - name: spread
      gate: off
      weighers: {vm-count: 2, node-affinity: 20, customer-keys: 1}
      balancer: even-vm-count
      parameters: {HighVMCount: 8}
  clusters:
    - name: default
      ram_ratio: 1.5
      node_keys: [{name: Premium}]
      policy: spread
      balancing: automatic
      balance_window: Mon-Fri 20:00-06:00
  billing_entities: [{name: us, master: true}]
  customers: [{name: acme, billing_entity: us}]
  vdcs: [{name: acme-prod, customer: acme}]
  nodes: [{name: hv1, keys: {Premium: 1}}]
  vms:
    - name: web-1
      vdc: acme-prod
      memory: 2G
      vcpus: 2
      disks: [{path: /srv/web-1.qcow2, format: qcow2}]
      networks: [default]
      keys: [{name: Premium, value: 1, weight: 100}]
      labels: [web]
  groups:
    - name: web-apart
      vms_rule: negative
      vms_enforcing: true
      vm_labels: [web]
`
