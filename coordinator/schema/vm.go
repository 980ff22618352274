package schema

import "berth/coordinator/model"

// VM has what people declare of a VM, in the order of documents.
var VM = []Field[model.VM]{
	{
		Name: "description", Live: true, Since: 3, Doc: "what it is for, in one line", Most: model.MaxDescription,
		Help: "what it is for: a `TEXT` of one line", Title: "description",
		At: func(v *model.VM) any { return &v.Description },
	},
	{
		Name: "vdc", To: model.KindVDC, Doc: "whose it is and where it runs; in the default cluster if left out",
		Help: "`VDC` that it belongs to: it gives it cluster, customer and their keys", Title: "VDC",
		At: func(v *model.VM) any { return &v.VDC },
	},
	{
		Name: "offer", To: model.KindOffer, Doc: "product offer, one for vms",
		Help: "product `OFFER` whose keys it takes over", Title: "offer",
		At: func(v *model.VM) any { return &v.Offer },
	},
	{
		Name: "image", To: model.KindImage, Doc: "what it is made from",
		Flag: "from", Help: "declared `IMAGE` that it is made from (a file is --image)", Title: "from image",
		At: func(v *model.VM) any { return &v.Image },
	},
	{
		Name: "within", Doc: "one of them, where it runs if its VDC does not say that, or inside what that says",
		At: func(v *model.VM) any { return (*Place)(&v.Within) },
	},
	{
		Name: "memory", Spec: true, Required: true, Doc: "how much it has, for instance 2G",
		At: func(v *model.VM) any { return &v.Spec.Memory },
	},
	{
		Name: "vcpus", Spec: true, Required: true, Doc: "how many it has",
		At: func(v *model.VM) any { return &v.Spec.VCPUs },
	},
	{
		Name: "max_memory", Spec: true, Since: 3, Long: "maximum memory",
		Doc: "how much it can get while it runs; no more than memory if left out",
		At:  func(v *model.VM) any { return &v.Spec.MaxMemory },
	},
	{
		Name: "max_vcpus", Spec: true, Since: 3, Long: "maximum vCPUs",
		Doc: "how many it can get while it runs; no more than vcpus if left out",
		At:  func(v *model.VM) any { return &v.Spec.MaxVCPUs },
	},
	{
		Name: "machine", Spec: true, Doc: "machine type, for instance q35; the node's default if left out",
		Help: "machine `TYPE`, for instance q35; the node's default if left out", Title: "machine",
		At: func(v *model.VM) any { return &v.Spec.Machine },
	},
	{
		Name: "firmware", Spec: true, Doc: "bios or efi; what the machine type has if left out",
		Words: []string{model.FirmwareBIOS, model.FirmwareEFI},
		Help:  "firmware `WORD`: bios or efi; what the machine type has if left out", Title: "firmware",
		At: func(v *model.VM) any { return &v.Spec.Firmware },
	},
	{
		Name: "cpu", Spec: true, Doc: "host-passthrough, or a CPU model; one that all nodes of its cluster can run if left out",
		Help:    "CPU `MODEL`, or host-passthrough; one that all nodes of its cluster can run if left out",
		Suggest: []string{model.CPUHostPassthrough},
		At:      func(v *model.VM) any { return &v.Spec.CPU },
	},
	{
		Name: "disks", Doc: "names of disks, then plain files {path, format, bus, read_only}",
		Flag: "attach", Help: "declared `DISK` (a file is --disk); repeat for more, the first one's keys count", Title: "attached",
		At: func(v *model.VM) any { return Disks{&v.Disks, &v.Spec.Disks} },
	},
	{
		Name: "nics", To: model.KindNIC, Doc: "names of NICs",
		Flag: "nic", Help: "declared `NIC` (a plain network is --network); repeat for more, the first one's keys count", Title: "NICs",
		At: func(v *model.VM) any { return &v.NICs },
	},
	{
		Name: "networks", Spec: true, Doc: "plain NICs: a libvirt network's name, or bridge:NAME",
		Flag: "network", Help: "libvirt network `NAME`, or bridge:NAME; repeat for more",
		At: func(v *model.VM) any { return &v.Spec.Networks },
	},
	{
		Name: "kernel", Spec: true, Doc: "file on the nodes to boot, with initrd and cmdline",
		Help: "kernel to boot directly: a `PATH` on the nodes", Title: "kernel",
		At: func(v *model.VM) any { return &v.Spec.Kernel },
	},
	{
		Name: "initrd", Spec: true, Doc: "initial RAM disk for the kernel",
		Help: "initial RAM disk for the kernel: a `PATH` on the nodes", Title: "initrd",
		At: func(v *model.VM) any { return &v.Spec.Initrd },
	},
	{
		Name: "cmdline", Spec: true, Doc: "command line of the kernel",
		Help: "kernel command line `TEXT`", Title: "cmdline",
		At: func(v *model.VM) any { return &v.Spec.Cmdline },
	},
	{
		Name: "user_data", Spec: true, Long: "user data", Doc: "of cloud-init; it needs a disk that is a volume",
		At: func(v *model.VM) any { return &v.Spec.UserData },
	},
	{
		Name: "xml", Spec: true, Long: "XML",
		Doc: "instead of memory, vcpus and what else is in it: a libvirt domain; linked disks and NICs then only give keys",
		At:  func(v *model.VM) any { return &v.Spec.XML },
	},
	{Name: "keys", Doc: "see below", At: func(v *model.VM) any { return &v.Keys }},
	{
		Name: "labels", Live: true, Doc: "by which groups take it in", Check: model.ValidateLabels,
		Flag: "label", Help: "`LABELS` by which groups take it in; repeat for more", Title: "labels",
		At: func(v *model.VM) any { return &v.Labels },
	},
	{
		Name: "migration", Live: true, Words: []string{"automatic", string(model.MigrateManual), string(model.MigrateNever)}, Defaults: true,
		Doc:  "who may move it while it runs: automatic (left out), manual (people, and a drain that they ask for), or never",
		Help: "`WHO` may move it while it runs: automatic (Berth too), manual (people only) or never",
		At:   func(v *model.VM) any { return (*string)(&v.Migration) },
	},
	{
		Name: "ha", Live: true, Doc: "true: it is restarted elsewhere once its node is proven to be off, or when it is gone",
		Help: "highly available: Berth restarts it elsewhere once its node is proven to be off, or when it is gone",
		At:   func(v *model.VM) any { return &v.HA },
	},
	{
		Name: "restart", Live: true, Since: 3, Defaults: true, Title: "restart",
		Words: []string{"cluster", string(model.RestartAlways), string(model.RestartHA), string(model.RestartNever)},
		Doc: "when it is started again by itself: always (also once its host is back that had lost its power), ha (only with ha), never (also " +
			"not with ha), or as its cluster says (left out)",
		Help: "`WHEN` it is started again by itself: always, also once its host is back after a power cut; ha: only with --ha; never; cluster: " +
			"as its cluster says",
		At: func(v *model.VM) any { return (*string)(&v.Restart) },
	},
	{
		Name: "restart_priority", Live: true, Since: 3, Words: []string{"normal", string(model.RestartHigh), string(model.RestartLow)},
		Defaults: true, Title: "restart priority",
		Doc:  "of a VM with ha, whose restart goes first when several wait for room: high, then normal (left out), then low",
		Help: "with --ha, its `PRIORITY` when several wait for room: high ones are restarted first, then normal, then low",
		At:   func(v *model.VM) any { return (*string)(&v.RestartPriority) },
	},
	{
		Name: "restart_after", Live: true, Since: 3, Check: model.ValidateLabels, Title: "restart after",
		Doc:  "labels of VMs of its cluster that run before it is started again by itself, as far as they are to run; for ten minutes at most",
		Help: "`LABELS` of VMs that run before Berth starts it again by itself, ten minutes at most; repeat for more",
		At:   func(v *model.VM) any { return &v.RestartAfter },
	},
	{
		Name: "preferred", To: model.KindNode, Doc: "names of nodes that it had better start on",
		Flag: "prefer", Help: "`NODES` that it had better start on; repeat for more", Title: "prefers",
		At: func(v *model.VM) any { return &v.Preferred },
	},
}
