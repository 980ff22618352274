package schema

import (
	"slices"

	"berth/coordinator/model"
	"berth/coordinator/view"
	"berth/shared/domxml/guard"
)

// Form is what a kind of resource has.
type Form struct {
	Kind   model.Kind
	Plural string // in documents: billing_entities; on the command line with dashes
	Doc    string // one sentence for people

	Links    []Link
	Settings []Setting
	Lists    []List
	Members  []MemberList
	// HasNodeKeys is true of clusters, which declare the keys of their nodes.
	HasNodeKeys bool
}

// Link is one relation of a resource to another one. In documents and on the command line it is named like this, with an
// underscore or a dash: billing_entity, --billing-entity.
type Link struct {
	Name     string
	To       model.Kind
	For      model.Kind // of a link to an offer: what the offer must be for
	Required bool
	Fixed    bool // cannot change once the resource is there
	Doc      string
}

// Setting is one plain value of a resource.
type Setting struct {
	Name     string
	Doc      string
	Default  string // empty: none
	Required bool
	Fixed    bool     // cannot change once the resource is there
	Words    []string // the only values, where there are few
	Why      string   // of one that is fixed: why it cannot change, where that is not plain

	// Bytes tells that it is a size: kept in bytes, shown with a unit.
	Bytes bool

	check   func(value string) (string, error) // of a setting without Words
	aliases map[string]string                  // words of the designs that stand for some of Words
}

// List is one list of plain words of a resource, each of them there once. In records they are in ascending order.
type List struct {
	Name    string
	Doc     string
	Default []string // what it comes to when it is left out or empty
	Words   []string // the only words, or names of pairs, where these are known
	Pairs   bool     // each is NAME=NUMBER, and no name is there twice; in documents a mapping NAME: NUMBER

	check func(word string) error // of a list without Words; nil: anything
}

// MemberList is one list of VMs or nodes that belong to a resource, each of them once. In records they are IDs, everywhere
// else names.
type MemberList struct {
	Name string
	To   model.Kind // KindVM or KindNode
	Doc  string
}

// Canonical checks a value and gives it the form in which it is stored. The error is a *model.InvalidError.
func (s Setting) Canonical(value string) (string, error) {
	if s.Words != nil {
		if own, known := s.aliases[value]; known {
			value = own
		}
		return oneOf(s.Name, s.Words, value)
	}
	return s.check(value)
}

// IsAlias tells whether a value is a word of the designs for one of ours.
func (s Setting) IsAlias(value string) bool {
	_, known := s.aliases[value]
	return known
}

// Link names.
const (
	LinkBillingEntity = "billing_entity"
	LinkCustomer      = "customer"
	LinkCluster       = model.LinkCluster
	LinkVDC           = "vdc"
	LinkNetwork       = "network"
	LinkOffer         = "offer"
	LinkPolicy        = "policy"
	LinkImage         = "image" // of a VM, and of a disk that is a copy of it
	LinkZone          = "zone"
	LinkPod           = "pod"
	LinkPool          = "pool" // of a disk: the only one that it may be made in
)

// Setting names of the kinds other than clusters.
const (
	SettingMaster = "master" // billing entity: the master one, true or false
	SettingFor    = "for"    // offer: the kind that it is for
	SettingPath   = "path"   // image, disk
	SettingFormat = "format" // image, disk: raw or qcow2
	SettingBus    = "bus"    // disk: virtio, sata or scsi
	SettingSource = "source" // network: a libvirt network's name, or bridge:NAME
	SettingSize   = "size"   // disk: of its volume
	SettingKeep   = "keep"   // disk: true or false
)

// DefaultBus is the bus of a disk that names none.
const DefaultBus = "virtio"

func offer(of model.Kind) Link {
	return Link{Name: LinkOffer, To: model.KindOffer, For: of, Doc: "product offer, one for " + string(of) + "s"}
}

// forms has every kind that has a record of its own in the estate, in the order of the hierarchy: what a kind links to
// stands before it.
var forms = []Form{
	PolicyForm,
	zoneForm,
	podForm,
	{
		Kind: model.KindCluster, Plural: "clusters", HasNodeKeys: true,
		Doc: "nodes that VMs are placed on together, with their rules",
		Links: []Link{
			{Name: LinkPolicy, To: model.KindPolicy, Doc: "how its nodes are chosen; the built-in affinity if left out"},
			{Name: LinkPod, To: model.KindPod, Doc: "where it stands; a cluster of no pod counts as a pod of its own"},
		},
		Settings: []Setting{
			{
				Name: model.SettingStorage, Doc: "shared, or local: VMs are placed when they are created", Default: "shared",
				Words: []string{"shared", "local"},
			},
			{
				Name: model.SettingRAMRatio, Doc: "RAM contention ratio of its nodes, 0.1 to 16", Default: "1",
				check: number(model.SettingRAMRatio, model.MinRAMRatio, model.MaxRAMRatio),
			},
			{
				Name: model.SettingCPURatio, Doc: "CPU contention ratio of its nodes, 0.1 to 64", Default: "8",
				check: number(model.SettingCPURatio, model.MinCPURatio, model.MaxCPURatio),
			},
			{
				Name: model.SettingOverhead, Doc: "memory kept free on each node", Default: "1 GiB", Bytes: true,
				check: size(model.SettingOverhead, 0, model.MaxOverhead),
			},
			{
				Name: model.SettingInitialMSAV, Doc: "threshold of the first system round", Default: "80",
				check: number(model.SettingInitialMSAV, -model.MaxKeyFigure, model.MaxKeyFigure),
			},
			{
				Name: model.SettingFinalMSAV, Doc: "threshold of the last system round", Default: "-10",
				check: number(model.SettingFinalMSAV, -model.MaxKeyFigure, model.MaxKeyFigure),
			},
			{
				Name: model.SettingMSAVSteps, Doc: "number of system rounds, 1 to 1000", Default: "10",
				check: whole(model.SettingMSAVSteps, 1, model.MaxMSAVSteps),
			},
			{
				Name: model.SettingKeyScope, Doc: "whose VMs a customer key can meet: customer, or cluster for everybody's",
				Default: "customer", Words: []string{"customer", "cluster"},
			},
			{
				Name: model.SettingPhysicalLedger, Doc: "pessimistic: what KSM and ballooning save is lost; or optimistic",
				Default: "pessimistic", Words: []string{"pessimistic", "optimistic"},
			},
			{
				Name: model.SettingEnforcement, Doc: "of the groups' rules: off, manual (a plan waits for somebody) or automatic",
				Default: string(model.Automatic), Words: modes,
			},
			{
				Name: model.SettingBalancing, Doc: "by the policy's balancer: off, manual (a plan waits for somebody) or automatic",
				Default: string(model.Manual), Words: modes,
			},
			{Name: model.SettingBalanceWindow, Doc: `when balancing may move VMs, in UTC: "Sat,Sun 22:00-06:00"; left out: always`, check: window},
			{
				Name: model.SettingCooldown, Doc: "how long balancing and soft repairs leave a VM that has moved, 0s to 720h", Default: "30m",
				check: duration(model.SettingCooldown, 0, model.MaxCooldown),
			},
			{
				Name: model.SettingParallelMoves, Doc: "moves of a plan at a time out of a node, and into one, 1 to 16", Default: "2",
				check: whole(model.SettingParallelMoves, 1, model.MaxParallelMoves),
			},
			{
				Name: model.SettingParallelStarts, Doc: "VMs that start on a node at a time, 1 to 64; further ones wait for their turn",
				Default: "5", check: whole(model.SettingParallelStarts, 1, model.MaxParallelStarts),
			},
			{
				Name: model.SettingSpareNodes,
				Doc: "nodes that may fail at a time so that all their VMs with ha can be restarted on the others, 0 to 8: " +
					"every decision keeps that; 0 for none",
				Default: "0", check: whole(model.SettingSpareNodes, 0, view.MaxSpareNodes),
			},
			{
				Name: model.SettingPromiseVCPUs,
				Doc: "true: a node takes no VM that would bring its vCPUs above its CPUs times cpu_ratio, whatever the policy; false: only " +
					"policies with the constraint vcpus-promised keep that, of the built-in ones those that weigh",
				Default: "false", Words: truth,
			},
			{
				Name: model.SettingUpgradeMode,
				Doc: "true: while its nodes are updated in turn, no rule of a group is enforced and nothing is balanced; drains and what people " +
					"ask for go on",
				Default: "false", Words: truth,
			},
			{
				Name: model.SettingFenceAfter, Doc: "how long a node may be silent before it is fenced for VMs with ha, 30s to 24h",
				Default: "1m", check: duration(model.SettingFenceAfter, model.MinFenceAfter, model.MaxFenceAfter),
			},
			{
				Name: model.SettingFenceSickAfter,
				Doc: "how long a node that answers may say that its libvirt, its disk or its storage does not, before it is fenced for VMs " +
					"with ha, 5m to 24h; never: only silent nodes are fenced",
				Default: model.FenceSickNever, check: sickAfter,
			},
			{
				Name: model.SettingRestart,
				Doc: "which VMs start again by themselves: always (those with ha, and all that ran once their host is back that had lost its " +
					"power) or ha (those with ha); a VM may say otherwise",
				Default: string(model.RestartAlways), Words: []string{string(model.RestartAlways), string(model.RestartHA)},
			},
			{
				Name: model.SettingCPUModel, Doc: "CPU model of its VMs; left out: the best one that all its nodes can run",
				check: word64(model.SettingCPUModel),
			},
			{
				Name: model.SettingPermit, check: permissions,
				Doc: "what may be put onto its hosts beside disks in known places and declared networks: all, none, or permissions with commas " +
					"between (" + guard.Listed(guard.Permissions()) + "); left out: none, and all on a site that a release before 0.7 began",
			},
			{
				Name: model.SettingImageFolders, Default: model.DefaultImageFolders, check: folders,
				Doc: "folders of its hosts, with commas between, where files need no permission; none: only those of declared pools",
			},
			capacityThreshold("used share of CPU or RAM above which planners leave it out, 0 for never; its zone's if left out", ""),
		},
	},
	{
		Kind: model.KindBillingEntity, Plural: "billing_entities",
		Doc: "a reseller, or the operator's own master billing entity",
		Settings: []Setting{{
			Name: SettingMaster, Doc: "true for the master billing entity; there is at most one", Default: "false", Fixed: true,
			Words: truth,
		}},
	},
	{
		Kind: model.KindOffer, Plural: "offers", Doc: "a product offer, whose keys what it is for inherits",
		Settings: []Setting{{
			Name: SettingFor, Required: true, Fixed: true, Doc: "customer, image, vdc, vm, disk, network or nic",
			Words: []string{"customer", "image", "vdc", "vm", "disk", "network", "nic"},
		}, {
			Name: model.SettingPlanner, Fixed: true, Words: Planners(), aliases: plannerAliases,
			Doc: "of an offer for VMs, what orders pods, clusters and nodes: " + AnyOf(Planners()) + "; the zone's if left out",
			Why: "VMs that it has placed are not placed anew, so an offer keeps the planner that it was created with",
		}},
	},
	{
		Kind: model.KindCustomer, Plural: "customers", Doc: "who VDCs and their VMs belong to",
		Links: []Link{
			{Name: LinkBillingEntity, To: model.KindBillingEntity, Doc: "who bills the customer"},
			offer(model.KindCustomer),
		},
	},
	{
		Kind: model.KindVDC, Plural: "vdcs", Doc: "a virtual data centre: a customer's VMs in one cluster, pod or zone",
		Links: []Link{
			{Name: LinkCustomer, To: model.KindCustomer, Required: true, Doc: "whose it is"},
			{Name: LinkZone, To: model.KindZone, Doc: "where its VMs run: any cluster of the zone"},
			{Name: LinkPod, To: model.KindPod, Doc: "where its VMs run: any cluster of the pod"},
			{Name: LinkCluster, To: model.KindCluster, Doc: "where its VMs run; the default cluster if zone and pod are left out too"},
			offer(model.KindVDC),
		},
	},
	poolForm,
	{
		Kind: model.KindImage, Plural: "images", Doc: "what VMs are made from",
		Links: []Link{offer(model.KindImage)},
		Settings: []Setting{
			{
				Name: SettingPath, Doc: "file on the nodes, the last and read-only disk of its VMs; left out: the image has only keys",
				check: absolute(SettingPath),
			},
			{Name: SettingFormat, Doc: "raw or qcow2, of the file", Words: []string{"raw", "qcow2"}},
		},
	},
	{
		Kind: model.KindNetwork, Plural: "networks", Doc: "a network that NICs are attached to",
		Links:    []Link{offer(model.KindNetwork)},
		Settings: []Setting{{Name: SettingSource, Required: true, Doc: "a libvirt network's name, or bridge:NAME", check: source(SettingSource)}},
	},
	diskForm,
	{
		Kind: model.KindNIC, Plural: "nics", Doc: "a network card, attached to a VM by the VM",
		Links: []Link{
			{Name: LinkNetwork, To: model.KindNetwork, Required: true, Doc: "what it is connected to"},
			offer(model.KindNIC),
		},
	},
	groupForm,
}

var (
	modes = []string{string(model.Off), string(model.Manual), string(model.Automatic)}
	truth = []string{"true", "false"}
)

// Forms are those of all kinds, what others link to before what links to it.
func Forms() []Form { return slices.Clone(forms) }

// FormOf is that of one kind; false for nodes and VMs, whose records are of their own, and for what is no kind.
func FormOf(kind model.Kind) (Form, bool) {
	at := slices.IndexFunc(forms, func(f Form) bool { return f.Kind == kind })
	if at < 0 {
		return Form{}, false
	}
	return forms[at], true
}

// Fields are the names of everything that a resource of the form may have set.
func (f Form) Fields() []string {
	var names []string
	for _, link := range f.Links {
		names = append(names, link.Name)
	}
	for _, setting := range f.Settings {
		names = append(names, setting.Name)
	}
	for _, members := range f.Members {
		names = append(names, members.Name)
	}
	for _, list := range f.Lists {
		names = append(names, list.Name)
	}
	return names
}
