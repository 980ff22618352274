package cli_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"berth/coordinator/cli"
	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/term"
)

// A command line that cannot be meant is refused before anybody is asked, with the reason and the right usage.
func TestWrongUsage(t *testing.T) {
	w, _ := clitest.NewSite(t) // no coordinator, no configuration: nothing may be looked for
	start, migrate := "usage: berth vm start [NAME...] [flags]", "usage: berth vm migrate NAME... (--best | --to NODE) [flags]"
	for _, c := range []struct{ line, say, usage string }{
		{"frobnicate", `unknown command "frobnicate"`, "usage: berth COMMAND"},
		{"nod list", `unknown command "nod", did you mean nic or node or pod or top?`, "usage: berth COMMAND"},
		{"node", "COMMAND is missing: add, delete, drain, fence, list, maintenance, profile, set, show, undrain", "usage: berth node COMMAND"},
		{"node lst", `unknown command "lst", did you mean list or set?`, "usage: berth node COMMAND"},
		{
			"events --follow --sort kind", "--follow and --sort exclude each other: what happens comes as it happens",
			"usage: berth events [flags]",
		},
		{"events --sort size", "--sort size: use name, kind, caller, age", "usage: berth events [flags]"},
		{"events --follow --until 1h", "--follow and --until exclude each other", "usage: berth events [flags]"},
		{
			"events --since yesterday", `invalid argument "yesterday" for "--since" flag: want an age, for instance 2h or 3d, or an RFC 3339 time`,
			"usage: berth events [flags]",
		},
		{"operation list --until 2x", "want an age, for instance 2h or 3d", "usage: berth operation list [flags]"},
		{"decision list --since -2h", `invalid argument "-2h" for "--since" flag`, "usage: berth decision list [flags]"},
		{"decision list --since 9999999h", "want an age", "usage: berth decision list [flags]"},
		{"vm list extra", `unexpected argument "extra"`, "usage: berth vm list [flags]"},
		{"vm list --colour", "unknown flag: --colour", "usage: berth vm list [flags]"},
		{"vm list -o xml", `invalid argument "xml" for "-o, --output" flag: use table, wide, json, yaml, name`, "usage: berth vm list [flags]"},

		{"node fence node1 --yes --check=maybe", "invalid argument", "usage: berth node fence [NODE] [flags]"},
		{"node fence node1 --check --force", "--check switches nothing: leave out the other one", "usage: berth node fence [NODE] [flags]"},
		{"node fence node1 --confirmed-off --force", "exclude each other", "usage: berth node fence [NODE] [flags]"},
		{"node fence", "NODE is missing, or a --label", "usage: berth node fence [NODE] [flags]"},
		{"node fence node1 --label rack3", "name one NODE or a --label, not both", "usage: berth node fence [NODE] [flags]"},
		{"node fence --label rack3 --check", "--check and --force are for one NODE", "usage: berth node fence [NODE] [flags]"},
		{"node set node1 --fence magic", "--fence magic: use command, manual, watchdog, none", "usage: berth node set NODE [flags]"},
		{"node set node1 --fence-arg ip=1", "--fence-arg goes with --fence command", "usage: berth node set NODE [flags]"},
		{"node set node1 --fence manual --fence-program fence_x", "with method command only", "usage: berth node set NODE [flags]"},
		{"node set node1 --fence command --fence-program /bin/sh", `program "/bin/sh" is not valid`, "usage: berth node set NODE [flags]"},
		{
			"node set node1 --fence command --fence-program fence_x --fence-arg passwordsecret", "want NAME=VALUE",
			"usage: berth node set NODE [flags]",
		},

		{"vm start", "NAME is missing", start},
		{"vm start web1 web1", `"web1" is there twice`, start},
		{"vm start web1 web2 --memory 1G", "--memory describes one VM: several that exist start without it", start},
		{"vm start web1 web2 --label x", "--label describes one VM", start},
		{"vm start web1 web2 --dry-run --full", "--full is for one VM", start},
		{"vm start web1 --memory 1G --migration maybe", "--migration maybe: use automatic, manual, never", start},
		{"vm start web1 --prefer hv1", "--memory is missing: a new VM needs a size", start},
		{"vm start web1 --vcpus 2", "--memory is missing: a new VM needs a size", start},
		{"vm start web1 --memory", "flag needs an argument: --memory", start},
		{"vm start web1 --memory -512M", `--memory: size "-512M" is negative`, start},
		{"vm start web1 --memory lots", `--memory: size "lots": want a number with a unit`, start},
		{"vm start web1 --memory 5X", `--memory: size "5X": unknown unit "x"`, start},
		{"vm start web1 --memory 0", "memory 0 B is not valid: want 1 MiB to 24 TiB", start},
		{"vm start web1 --memory 900T", "memory 900 TiB is not valid: want 1 MiB to 24 TiB", start},
		{"vm start web1 --memory 512M --vcpus 0", "--vcpus 0: want 1 to 4096", start},
		{"vm start web1 --memory 512M --vcpus -1", "--vcpus -1: want 1 to 4096", start},
		{"vm start web1 --memory 512M --vcpus 5000", "--vcpus 5000: want 1 to 4096", start},
		{"vm start web1 --memory 512M --vcpus two", `invalid argument "two" for "--vcpus" flag`, start},
		{"vm start we/b --memory 512M", `VM name "we/b" is not valid`, start},
		{"vm start web1 --memory 512M --disk relative.raw", `disks[0].path "relative.raw" is not valid: want an absolute path`, start},
		{"vm start web1 --memory 512M --disk /a.raw,size=5", `--disk /a.raw,size=5: not a disk: unknown option "size=5"`, start},
		{"vm start web1 --memory 512M --disk ,bus=scsi", "the path is missing", start},
		{"vm start web1 --memory 512M --disk /a,bus=ide", `disks[0].bus "ide" is not valid: want virtio, sata or scsi`, start},
		{"vm start web1 --memory 512M --image /a --disk /a", "disks[1].path", start},
		{"vm start web1 --memory 512M --initrd /i", "want a kernel, because there is an initrd", start},
		{"vm start web1 --xml vm.xml --memory 512M", "--xml and --memory exclude each other", start},
		{"vm start --xml vm.xml --disk /a", "--xml and --disk exclude each other", start},
		{"vm start web1 --timeout 0s", "--timeout 0s: want more than nothing", start},
		{"vm start web1 --wait --no-wait", "--wait and --no-wait exclude each other", start},
		{"vm start web1 --no-wait --timeout 9s", "--timeout and --no-wait exclude each other", start},

		{"vm start web1 --vdc acme-prod", "--memory is missing: a new VM needs a size; 'berth vm set' changes an existing one", start},
		{"vm start web1 --key Group1=1@5", "--memory is missing: a new VM needs a size", start},
		{"vm start web1 --memory 1G --key Group1=1", "--key Group1=1: want NAME=VALUE@WEIGHT", start},
		{"vm start web1 --memory 1G --key Group1=1@heavy", `key Group1 weight "heavy" is not valid: want a finite number`, start},
		{"vm start web1 --memory 1G --key Group1=NaN@1", "key Group1 value NaN is not valid", start},
		{"vm start web1 --memory 1G --key #RAM=1@1", "as a customer key is not valid: want a name without leading #", start},
		{"vm start web1 --memory 1G --key A=1@1 --key A=2@2", "--key A=2@2: A is there twice", start},
		{"vm start web1 --memory 1G --full", "--full is for --dry-run", start},
		{"vm add web1", "--memory is missing: a new VM needs a size", "usage: berth vm add [NAME] [flags]"},
		{"vm add", "NAME is missing", "usage: berth vm add [NAME] [flags]"},
		{
			"vm set web1",
			"say what to set: --description, --vdc, --offer, --from, --attach, --nic, --label, --migration, --ha, --restart, --restart-priority, " +
				"--restart-after, --prefer, --zone, --pod, --cluster, --memory, --vcpus, " +
				"--max-memory, --max-vcpus or --unset",
			"usage: berth vm set NAME... [flags]",
		},
		{"vm set web1 --vdc=", "--vdc: a value is missing; --unset vdc takes away what there is", "usage: berth vm set NAME... [flags]"},
		{"vm set web1 --vdc a --unset vdc", "--vdc and --unset vdc exclude each other", "usage: berth vm set NAME... [flags]"},
		{"vm set web1 --zone a --pod b", "--zone and --pod exclude each other: a VM runs in one of them", "usage: berth vm set NAME... [flags]"},
		{
			"vm start web1 --memory 1G --pool fast",
			"--pool: give the --root-size of the disk that is made with the VM, or the name of its --image", start,
		},
		{"vm start web1 --memory 1G --root-size 1K", "--root-size 1K: want 1 MiB to 1024 TiB", start},
		{"vm start web1 --memory 1G --image debian --root-bus ide", "--root-bus ide: use virtio, sata, scsi", start},
		{"vm start web1 --memory 1G --firmware uefi", "--firmware uefi: use bios, efi", start},
		{"vm start web1 --zone fra", "--memory is missing: a new VM needs a size", start},
		{"vm start web1 web2 --root-size 1G", "--root-size describes one VM", start},
		{
			"vm set web1 --unset memory", "--unset memory: use description, vdc, offer, from, attach, nic, label, migration, ha, " +
				"restart, restart-priority, restart-after, prefer, zone",
			"usage: berth vm set NAME... [flags]",
		},
		{"vm set web1 --label a --unset label", "--label and --unset label exclude each other", "usage: berth vm set NAME... [flags]"},
		{"vm set web1 web2 --memory 1G", `unexpected argument "web2": several VMs take --now`, "usage: berth vm set NAME... [flags]"},
		{"vm set web1 --now", "say what to change now: --memory or --vcpus", "usage: berth vm set NAME... [flags]"},
		{"vm set web1 --memory 1G --label a --now", "--now is about --memory and --vcpus: set --label", "usage: berth vm set NAME... [flags]"},
		{"vm set web1 --memory 1G --no-wait", "--no-wait goes with --now alone", "usage: berth vm set NAME... [flags]"},
		{"vm set web1 --label a,a", "--label a: it is there twice", "usage: berth vm set NAME... [flags]"},
		{"vm set web1 --migration sometimes", "--migration sometimes: use automatic, manual, never", "usage: berth vm set NAME... [flags]"},
		{
			"vm set web1 --description " + strings.Repeat("x", 257),
			"--description: description of 257 characters is not valid: want one line of at most 256 printable characters",
			"usage: berth vm set NAME... [flags]",
		},
		{"vm start web1 --memory 1G --description \a", `description "\a" is not valid: want one line`, start},
		{"vm set web1 --restart-priority first", "--restart-priority first: use normal, high, low", "usage: berth vm set NAME... [flags]"},
		{"vm set web1 --memory 1K", "memory 1 KiB is not valid", "usage: berth vm set NAME... [flags]"},
		{"vm set web1 --vcpus 0", "--vcpus 0: want 1 to 4096", "usage: berth vm set NAME... [flags]"},
		{"vm why-not web1", "--node is missing", "usage: berth vm why-not NAME --node NODE [flags]"},

		{"vdc add we/b --customer acme", `vdc name "we/b" is not valid`, "usage: berth vdc add NAME [flags]"},
		{"vdc add prod", "--customer is missing: whose it is", "usage: berth vdc add NAME [flags]"},
		{"vdc add prod --customer=", "--customer: CUSTOMER is missing", "usage: berth vdc add NAME [flags]"},
		{
			"disk add d1 --path relative --format raw", `path "relative" is not valid: want a clean absolute path`,
			"usage: berth disk add NAME [flags]",
		},
		{"pool add p1 --cluster c1", "--scope is missing: shared: all nodes", "usage: berth pool add NAME [flags]"},
		{"cluster add c1 --storage far", `storage "far" is not valid: want shared or local`, "usage: berth cluster add NAME [flags]"},
		{"cluster add c1 --ram-ratio NaN", `ram_ratio "NaN" is not valid: want a number from 0.1 to 16`, "usage: berth cluster add NAME [flags]"},
		{"cluster set c1", "say what to set: --policy, --pod, --storage, --ram-ratio", "usage: berth cluster set NAME [flags]"},
		{"cluster set c1 --unset ram", "--unset ram: use policy, pod, storage, ram-ratio", "usage: berth cluster set NAME [flags]"},
		{
			"cluster set c1 --ram-ratio 2 --unset ram_ratio", "--ram-ratio and --unset ram_ratio exclude each other",
			"usage: berth cluster set NAME [flags]",
		},
		{"vdc set v1 --unset customer", "--unset customer: use zone, pod, cluster, offer", "usage: berth vdc set NAME [flags]"},
		{"offer --for vm", "unknown flag: --for", "usage: berth offer COMMAND"},
		{"policy", "COMMAND is missing: add, copy, delete, list, set, show", "usage: berth policy COMMAND"},
		{"policy add p --selector loud", `selector "loud" is not valid: want rank,`, "usage: berth policy add NAME [flags]"},
		{
			"policy add p --balancer seesaw", `balancer "seesaw" is not valid: want none, even-vm-count`,
			"usage: berth policy add NAME [flags]",
		},
		{"policy add p --weigher loud=2", `weighers "loud" is not valid: want`, "usage: berth policy add NAME [flags]"},
		{
			"policy add p --weigher customer-keys", `weighers "customer-keys" is not valid: want NAME=NUMBER`,
			"usage: berth policy add NAME [flags]",
		},
		{
			"policy add p --weigher customer-keys=NaN", `weighers "customer-keys=NaN" is not valid: want NAME=NUMBER`,
			"usage: berth policy add NAME [flags]",
		},
		{
			"policy add p --weigher customer-keys=1,customer-keys=2", `weighers "customer-keys" is not valid: want each of them once`,
			"usage: berth policy add NAME [flags]",
		},
		{"policy add p --constraint wishful", `constraints "wishful" is not valid: want running`, "usage: berth policy add NAME [flags]"},
		{"policy add p --constraint=", "--constraint: NAMES is missing", "usage: berth policy add NAME [flags]"},
		{"policy set p", "say what to set: --gate", "usage: berth policy set NAME [flags]"},
		{
			"policy set p --weigher customer-keys=1 --add-weigher system-keys=1",
			"--add-weigher goes with neither --weigher nor --unset weigher", "usage: berth policy set NAME [flags]",
		},
		{
			"policy set p --unset parameter --remove-parameter HighCPU",
			"--remove-parameter goes with neither --parameter nor --unset parameter", "usage: berth policy set NAME [flags]",
		},
		{"policy set p --add-weigher loud=1", `weighers "loud" is not valid`, "usage: berth policy set NAME [flags]"},
		{"policy set p --remove-weigher a,a", "--remove-weigher a: it is there twice", "usage: berth policy set NAME [flags]"},
		{"policy copy p", "NAME is missing", "usage: berth policy copy POLICY NAME [flags]"},
		{"policy copy p we/b", `policy name "we/b" is not valid`, "usage: berth policy copy POLICY NAME [flags]"},
		{
			"cluster set c1 --balancing sometimes", `balancing "sometimes" is not valid: want off, manual or automatic`,
			"usage: berth cluster set NAME [flags]",
		},
		{"cluster set c1 --balance-window never", `balance_window "never" is not valid`, "usage: berth cluster set NAME [flags]"},
		{"cluster delete c1", "repeat it with --yes", "usage: berth cluster delete NAME [flags]"},
		{"cluster node-key drop c1 DS", "repeat it with --yes", "usage: berth cluster node-key drop CLUSTER NAME [flags]"},
		{
			"cluster node-key declare c1 DS --weight 3", "only a sticky node key has a weight",
			"usage: berth cluster node-key declare CLUSTER NAME [flags]",
		},
		{
			"cluster node-key declare c1 DS --sticky", "node key DS weight 0 is not valid",
			"usage: berth cluster node-key declare CLUSTER NAME [flags]",
		},
		{
			"cluster node-key declare c1 #RAM", "nodes have #RAM, #CPU and #LOAD by themselves",
			"usage: berth cluster node-key declare CLUSTER NAME [flags]",
		},
		{
			"cluster node-key declare c1 DS --default x", `node key DS default "x" is not valid`,
			"usage: berth cluster node-key declare CLUSTER NAME [flags]",
		},

		{"key set vm/ A=1", `"vm/": want KIND/NAME, for instance vm/web-1`, "usage: berth key set KIND/NAME KEY=VALUE [flags]"},
		{"key set server/web1 A=1", `there is no kind "server", use cluster, billing-entity`, "usage: berth key set KIND/NAME KEY=VALUE [flags]"},
		{
			"key set node/node1 A=1", "'berth node set node1 --key NAME=VALUE' gives one a value",
			"usage: berth key set KIND/NAME KEY=VALUE [flags]",
		},
		{"key set vm/web1 A", `"A": want NAME=VALUE`, "usage: berth key set KIND/NAME KEY=VALUE [flags]"},
		{
			"key set vm/web1 A=high", `key A value "high" is not valid: want a finite number from -1e9 to 1e9`,
			"usage: berth key set KIND/NAME KEY=VALUE [flags]",
		},
		{
			"key set vm/web1 A=NaN", "key A value NaN is not valid: want a finite number from -1e9 to 1e9",
			"usage: berth key set KIND/NAME KEY=VALUE [flags]",
		},
		{
			"key set vm/web1 A=1 --weight inf", "key A weight +Inf is not valid: want a finite number from -1e9 to 1e9",
			"usage: berth key set KIND/NAME KEY=VALUE [flags]",
		},
		{"key set vm/web1 A=1 --weight 1e400", "key A weight +Inf is not valid", "usage: berth key set KIND/NAME KEY=VALUE [flags]"},
		{"key set vm/web1 _ssd=1", "reserved keys are set on nodes", "usage: berth key set KIND/NAME KEY=VALUE [flags]"},
		{"key set vm/web1 #DISK=1", "want one of #RAM, #CPU and #LOAD", "usage: berth key set KIND/NAME KEY=VALUE [flags]"},
		{
			"key set customer/acme A=1 --class customer", "customer keys only on images, VMs, disks, networks and NICs",
			"usage: berth key set KIND/NAME KEY=VALUE [flags]",
		},
		{
			"key set vm/web1 A=1 --class admin", "--class admin: use system, billing-entity, customer",
			"usage: berth key set KIND/NAME KEY=VALUE [flags]",
		},
		{
			"key unset vm/web1 A --class admin", "--class admin: use system, billing-entity, customer",
			"usage: berth key unset KIND/NAME KEY [flags]",
		},
		{"key list vm/", `"vm/": want KIND/NAME`, "usage: berth key list KIND/NAME [flags]"},

		{"apply", "-f FILE is missing, - for the standard input", "usage: berth apply -f FILE [flags]"},
		{"export --seed 7", "--seed is for --scenario", "usage: berth export [flags]"},
		{"export --to=", "--to: FILE is missing", "usage: berth export [flags]"},
		{"vm profile web1 --last week", "--last week: want hour or day", "usage: berth vm profile NAME [flags]"},
		{"capacity", "--memory is missing: the size of such a VM", "usage: berth capacity --memory SIZE [flags]"},
		{"capacity --memory 1G --vcpus 0", "--vcpus 0: want 1 to 4096", "usage: berth capacity --memory SIZE [flags]"},
		{
			"capacity --memory 1G --add-nodes x", "--add-nodes x: want NUMBER or NUMBER:LIKE, for instance 2:node1",
			"usage: berth capacity --memory SIZE [flags]",
		},
		{
			"capacity --memory 1G --add-memory 1T", "--add-memory is of added nodes: say with --add-nodes how many",
			"usage: berth capacity --memory SIZE [flags]",
		},
		{
			"capacity --memory 1G --add-nodes 1 --add-memory 0", "--add-memory 0: want a size, for instance 512G",
			"usage: berth capacity --memory SIZE [flags]",
		},
		{"capacity --memory 1G --most -1", "--most -1: want 1 or more", "usage: berth capacity --memory SIZE [flags]"},

		{"vm migrate web1", "say where to: --best or --to NODE", migrate},
		{"vm migrate web1 --best --to node2", "--best and --to exclude each other", migrate},
		{"vm migrate --best", "NAME is missing", migrate},
		{"vm migrate web1 --to=", "--to: NODE is missing", migrate},
		{"vm migrate web1 --best --bandwidth 5", "--bandwidth 5: want at least 1 MiB a second", migrate},
		{"vm migrate web1 --best --bandwidth fast", `--bandwidth: size "fast"`, migrate},

		{"vm migrate web1 --to node2 --if-better 5", "--if-better is for --best", migrate},
		{"vm migrate web1 --best --if-better -1", "--if-better -1: want a gain of score, 0 or more", migrate},
		{"vm migrate web1 --best --if-better NaN", "--if-better NaN: want a gain of score", migrate},
		{"vm migrate web1 --best --full", "--full is for --dry-run", migrate},

		{"image import", "FILE is missing", "usage: berth image import FILE --pool POOL [flags]"},
		{"image import -  --pool p", "it cannot come from the standard input", "usage: berth image import FILE --pool POOL [flags]"},
		{"image import x.qcow2", "--pool is missing: the storage pool that it goes into", "usage: berth image import FILE --pool POOL [flags]"},
		{"image import x.qcow2 --pool p --format vmdk", "--format vmdk: use qcow2 or raw", "usage: berth image import FILE --pool POOL [flags]"},
		{"image import a+b.qcow2 --pool p", "--name gives it another one", "usage: berth image import FILE --pool POOL [flags]"},
		{"disk grow d1", "SIZE is missing", "usage: berth disk grow NAME SIZE [flags]"},
		{"disk grow d1 lots", `size "lots": want a number with a unit`, "usage: berth disk grow NAME SIZE [flags]"},
		{"disk grow d1 0", "SIZE 0: want more than nothing", "usage: berth disk grow NAME SIZE [flags]"},

		{"vm stop web1 --force --grace 5s", "--force and --grace exclude each other", "usage: berth vm stop NAME... [flags]"},
		{"vm stop web1 --grace -5s", "--grace -5s: want more than nothing", "usage: berth vm stop NAME... [flags]"},
		{"vm delete web1", "there is no terminal to ask on: repeat it with --yes", "usage: berth vm delete NAME... [flags]"},

		{
			"node set node1",
			"say what to set: --ram-ratio, --cpu-ratio, --overhead, --label, --management, --unbalanced, --fence, --reset, " +
				"--key, --unset-key, --machine or --cluster",
			"usage: berth node set NODE [flags]",
		},
		{"node set node1 --ram-ratio 150", "ram_ratio 150 is not valid: want 0.1 to 16", "usage: berth node set NODE [flags]"},
		{"node set node1 --ram-ratio NaN", "ram_ratio NaN is not valid", "usage: berth node set NODE [flags]"},
		{"node set node1 --overhead -1G", `--overhead: size "-1G" is negative`, "usage: berth node set NODE [flags]"},
		{
			"node set node1 --reset memory", "--reset memory: use ram-ratio, cpu-ratio, overhead, label, management, unbalanced",
			"usage: berth node set NODE [flags]",
		},
		{
			"node set node1 --ram-ratio 2 --reset ram_ratio", "--ram-ratio and --reset ram_ratio exclude each other",
			"usage: berth node set NODE [flags]",
		},
		{"node set node1 --label a --reset label", "--label and --reset label exclude each other", "usage: berth node set NODE [flags]"},
		{"node set node1 --label a,", "--label: a name is empty", "usage: berth node set NODE [flags]"},
		{"node maintenance node1", "on|off is missing", "usage: berth node maintenance NODE on|off [flags]"},
		{"node maintenance node1 maybe", `maintenance "maybe": want on or off`, "usage: berth node maintenance NODE on|off [flags]"},
		{"node maintenance node1 off --reason x", "--reason is for maintenance on", "usage: berth node maintenance NODE on|off [flags]"},
		{"node show=", `unknown command "show="`, "usage: berth node COMMAND"},

		{"node set node1 --key Premium", "--key Premium: want NAME=VALUE", "usage: berth node set NODE [flags]"},
		{
			"node set node1 --key Premium=high", `key Premium value "high" is not valid: want a finite number from -1e9 to 1e9`,
			"usage: berth node set NODE [flags]",
		},
		{"node set node1 --key Premium=-Inf", "key Premium value -Inf is not valid", "usage: berth node set NODE [flags]"},
		{"node set node1 --key Premium=1 --key Premium=2", "--key Premium=2: Premium is there twice", "usage: berth node set NODE [flags]"},
		{
			"node set node1 --key Premium=1 --unset-key Premium", "--key Premium and --unset-key Premium exclude each other",
			"usage: berth node set NODE [flags]",
		},
		{"node set node1 --cluster=", "--cluster: CLUSTER is missing", "usage: berth node set NODE [flags]"},

		{"node drain", "NODE is missing", "usage: berth node drain NODE [flags]"},
		{
			"node drain node1", "this moves VMs and there is no terminal to ask on: look with --dry-run, and repeat it with --yes",
			"usage: berth node drain NODE [flags]",
		},
		{"node drain node1 --parallel 0", "--parallel 0: want 1 to 16", "usage: berth node drain NODE [flags]"},
		{"node drain node1 --bandwidth 5", "--bandwidth 5: want at least 1 MiB a second", "usage: berth node drain NODE [flags]"},
		{"node drain node1 --abort", "--abort is for --cancel", "usage: berth node drain NODE [flags]"},
		{"node drain node1 --cancel --reason x", "--cancel and --reason exclude each other", "usage: berth node drain NODE [flags]"},
		{"node drain node1 --dry-run --no-wait", "--dry-run moves nothing and has nothing to wait for", "usage: berth node drain NODE [flags]"},
		{
			"node drain node1 --yes --timeout 0s", "--timeout 0s: want more than nothing; without it there is no limit",
			"usage: berth node drain NODE [flags]",
		},
		{"node drain node1 --yes --no-wait --timeout 1m", "--timeout and --no-wait exclude each other", "usage: berth node drain NODE [flags]"},
		{"node undrain node1 --dry-run", "--dry-run is for --return", "usage: berth node undrain NODE [flags]"},
		{"node undrain node1 --no-wait", "--no-wait is for --return", "usage: berth node undrain NODE [flags]"},
		{"plan", "COMMAND is missing: apply, cancel, discard, list, new, show, watch", "usage: berth plan COMMAND"},
		{"plan apply", "ID is missing", "usage: berth plan apply ID [flags]"},
		{"plan apply last --parallel 17", "--parallel 17: want 1 to 16", "usage: berth plan apply ID [flags]"},
		{"plan apply last --wait --no-wait", "--wait and --no-wait exclude each other", "usage: berth plan apply ID [flags]"},
		{"plan new --most 0", "--most 0: want 1 to 1000", "usage: berth plan new [flags]"},
		{"plan list --limit 0", "--limit 0: want 1 to 10000", "usage: berth plan list [flags]"},

		{"group", "COMMAND is missing: add, check, delete, list, set, show", "usage: berth group COMMAND"},
		{"group add", "NAME is missing", "usage: berth group add NAME [flags]"},
		{"group add we/b", `group name "we/b" is not valid`, "usage: berth group add NAME [flags]"},
		{
			"group add web --vms-rule sideways", "--vms-rule sideways: use positive, negative, disabled",
			"usage: berth group add NAME [flags]",
		},
		{
			"group add web --vms-enforcing", "--vms-enforcing without --vms-rule: say positive or negative",
			"usage: berth group add NAME [flags]",
		},
		{"group add web --vm a,a", "--vm a: it is there twice", "usage: berth group add NAME [flags]"},
		{"group add web --node hv1,", "--node: a name is empty", "usage: berth group add NAME [flags]"},
		{"group add web --vm-label=", "--vm-label: a name is missing", "usage: berth group add NAME [flags]"},
		{"group add web --priority NaN", "--priority NaN: want more than 0, at most 1e+06", "usage: berth group add NAME [flags]"},
		{"group add web --priority 0", "--priority 0: want more than 0", "usage: berth group add NAME [flags]"},
		{"group set web", "say what to change: --vm, --node", "usage: berth group set NAME [flags]"},
		{"group set web --vm a --add-vm b", "--add-vm goes with neither --vm nor --unset vm", "usage: berth group set NAME [flags]"},
		{"group set web --unset vm --remove-vm b", "--remove-vm goes with neither --vm nor --unset vm", "usage: berth group set NAME [flags]"},
		{"group set web --unset rule", "--unset rule: use vm, node, vm-label, node-label", "usage: berth group set NAME [flags]"},
		{"group set web --node hv1 --unset node", "--node and --unset node exclude each other", "usage: berth group set NAME [flags]"},
		{"group set web --name we/b", `group name "we/b" is not valid`, "usage: berth group set NAME [flags]"},
		{"group delete web", "repeat it with --yes", "usage: berth group delete NAME [flags]"},

		{"decision list --limit 0", "--limit 0: want 1 to 10000", "usage: berth decision list [flags]"},
		{"events --backlog -1", "--backlog -1: want 0 to 10000", "usage: berth events [flags]"},
		{"coordinator delete coord3", "repeat it with --yes", "usage: berth coordinator delete NAME [flags]"},
		{"coordinator snapshot restore f", "repeat it with --yes", "usage: berth coordinator snapshot restore FILE [flags]"},
		{
			"token add --for agent --uses 0", "--uses 0: want 1 to 500",
			"usage: berth token add --for agent|coordinator|operator [flags]",
		},
		{"token add", "--for is missing: agent, coordinator, operator", "usage: berth token add --for agent|coordinator|operator [flags]"},
		{
			"token add --for root", "--for root: use agent, coordinator, operator",
			"usage: berth token add --for agent|coordinator|operator [flags]",
		},
		{
			"token add --for agent --ttl 48h", "--ttl 48h0m0s: want 1s to 1h",
			"usage: berth token add --for agent|coordinator|operator [flags]",
		},
		{"login coord1", "TOKEN is missing", "usage: berth login HOST[:PORT] TOKEN [flags]"},
		{"login https://coord1 t", `not an address: "https://coord1"`, "usage: berth login HOST[:PORT] TOKEN [flags]"},
		{"version now", `unexpected argument "now"`, "usage: berth version [flags]"},
	} {
		said := w.Run(strings.Fields(c.line)...)
		if said.Exit != term.WrongUsage || said.Out != "" {
			t.Errorf("berth %s: exit %d, %q", c.line, said.Exit, said.Out)
		}
		lines := strings.Split(said.ErrOut, "\n")
		if len(lines) != 4 || !strings.HasPrefix(lines[0], "berth: ") || !strings.Contains(lines[0], c.say) ||
			lines[1] != c.usage || !strings.HasPrefix(lines[2], "next step: run 'berth ") {
			t.Errorf("berth %s: said\n%swant %q and %q", c.line, said.ErrOut, c.say, c.usage)
		}
	}
}

// What never changes has no verb for it in the help; who tries is told why.
func TestWhatIsFixedSaysWhy(t *testing.T) {
	w, _ := clitest.NewSite(t)
	for _, line := range []string{"offer set o1", "offer set o1 --planner first-fit", "billing-entity set b1 --master true"} {
		said := w.Run(strings.Fields(line)...)
		if said.Exit != term.Failed || said.Out != "" || !strings.Contains(
			said.ErrOut, "stay as they were made: ",
		) || !strings.Contains(said.ErrOut, " add'") {
			t.Errorf("berth %s: exit %d, %q, said\n%s", line, said.Exit, said.Out, said.ErrOut)
		}
	}
}

func TestEmptyArgumentsAreRefused(t *testing.T) {
	w, _ := clitest.NewSite(t)
	for _, args := range [][]string{{"vm", "show", ""}, {"vm", "start", ""}, {"node", "maintenance", "", "on"}} {
		if said := w.Run(args...); said.Exit != term.WrongUsage || !strings.Contains(said.ErrOut, " is empty") {
			t.Errorf("%q: exit %d, %q", args, said.Exit, said.ErrOut)
		}
	}
}

// Every command says what it does, how, and by example.
func TestHelpIsComplete(t *testing.T) {
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		path := cmd.CommandPath()
		if strings.HasPrefix(path, "berth completion") || path == "berth help" {
			return // cobra's own
		}
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: summary %q", path, cmd.Short)
		}
		switch {
		case cmd.HasSubCommands() && cmd.Long == "":
			t.Errorf("%s has no description", path)
		case !cmd.HasSubCommands() && !strings.Contains(cmd.Example, "  berth "):
			t.Errorf("%s has no example", path)
		case cmd.Args == nil:
			t.Errorf("%s does not check its arguments", path)
		}
		for _, flag := range withValue.FindAllStringSubmatch(cmd.LocalFlags().FlagUsages(), -1) {
			if _, set := cmd.GetFlagCompletionFunc(flag[1]); !set && !isFile(flag[1]) {
				t.Errorf("%s: --%s completes as a file name", path, flag[1])
			}
		}
		for _, line := range strings.Split(cmd.Long+"\n"+cmd.Example, "\n") {
			if len(line) > 120 {
				t.Errorf("%s: a line of %d characters: %s", path, len(line), line)
			}
		}
		for _, child := range cmd.Commands() {
			walk(child)
		}
	}
	walk(cli.New(cli.Options{}))

	w, _ := clitest.NewSite(t)
	for name, args := range map[string][]string{
		"help": {}, "help-vm": {"vm", "--help"}, "help-vm-start": {"vm", "start", "--help"}, "help-login": {"help", "login"},
		"help-key": {"key", "--help"}, "help-cluster": {"cluster", "--help"}, "help-vdc-add": {"vdc", "add", "--help"},
		"help-apply":          {"apply", "--help"},
		"help-events":         {"events", "--help"},
		"help-operation-list": {"operation", "list", "--help"}, "help-decision-list": {"decision", "list", "--help"},
		"help-billing-entity": {"billing-entity", "--help"}, "help-cluster-set": {"cluster", "set", "--help"},
		"help-node-drain": {"node", "drain", "--help"}, "help-plan": {"plan", "--help"}, "help-policy": {"policy", "--help"},
		"help-policy-set": {"policy", "set", "--help"},
		"help-group":      {"group", "--help"}, "help-group-add": {"group", "add", "--help"},
	} {
		said := w.Run(args...)
		if said.Exit != term.Done || said.ErrOut != "" {
			t.Errorf("%s: exit %d, %q", name, said.Exit, said.ErrOut)
		}
		clitest.Golden(t, name+".golden", said.Out)
	}
}

// withValue finds the flags that take a value: the value's name follows after one blank.
var withValue = regexp.MustCompile(`(?m)--([a-z-]+) \S`)

// isFile names the flags whose values are files, which shells complete by themselves.
func isFile(flag string) bool {
	return slices.Contains([]string{"client-config", "image", "kernel", "initrd", "disk", "xml", "user-data", "package", "cert", "key"}, flag)
}

// The program's own verbs stand among the others, and their wrong usage is wrong usage.
func TestAddedCoordinatorCommands(t *testing.T) {
	w, _ := clitest.NewSite(t)
	ran := false
	o := cli.Options{Version: "1.2.3", CoordinatorCommands: []*cobra.Command{{
		Use: "run", Short: "Run a coordinator", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error { ran = true; return nil },
	}}}
	var out, errOut strings.Builder
	if exit := cli.Run(t.Context(), o, []string{"coordinator", "run"}, w.In, &out, &errOut); exit != 0 || !ran {
		t.Errorf("exit %d, ran %v, %s", exit, ran, errOut.String())
	}
	if exit := cli.Run(
		t.Context(), o, []string{"coordinator", "run", "fast"}, w.In, &out, &errOut,
	); exit != 64 || !strings.Contains(errOut.String(), "usage: berth coordinator run") {
		t.Errorf("exit %d, %s", exit, errOut.String())
	}
}

// A verb that was called otherwise is understood for one release more, and says what it is called now. Programs read nothing of that.
func TestOldVerbsAreUnderstood(t *testing.T) {
	w, _ := clitest.NewSite(t, clitest.Steady())
	for line, now := range map[string]string{
		"group create web --vm web1": "berth group add", "group edit web --add-vm web2": "berth group set",
		"policy create spread": "berth policy add", "policy edit mine --gate off": "berth policy set",
		"node remove node1 --yes": "berth node delete", "coordinator remove coord3 --yes": "berth coordinator delete",
		"token create --for agent": "berth token add", "vm snapshot create web1 --name weekly --no-wait": "berth vm snapshot add",
	} {
		said := w.Run(strings.Fields(line)...)
		if said.Exit != term.Done || strings.Count(said.ErrOut, "is '"+now+"' now, and the old word goes in a later release\n") != 1 {
			t.Errorf("berth %s: exit %d, %q", line, said.Exit, said.ErrOut)
		}
		if said := w.Run(append(strings.Fields(line), "-o", "json")...); strings.Contains(said.ErrOut, "old word") {
			t.Errorf("berth %s -o json: %q", line, said.ErrOut)
		}
	}
	if said := w.Run("group", "add", "web", "--vm", "web1"); strings.Contains(said.ErrOut, "old word") {
		t.Errorf("said %q", said.ErrOut)
	}
}
