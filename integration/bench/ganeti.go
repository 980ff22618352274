package main

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// site is a cluster as Ganeti's htools and Berth both can read it, every host alike. Amounts are in MiB.
type site struct {
	used []int // by host: memory promised to guests
	vms  []siteVM
}

type siteVM struct{ memory, vcpus, host int }

const (
	siteMemory = 512 * 1024
	siteOwn    = 8 * 1024 // of it, the host's
	siteSpare  = 80 * 1024
	siteDisk   = 100 * 1024 * 1024
	siteCPUs   = 64
	siteRatio  = 8 // vCPUs a CPU
	siteVMs    = 10
	siteGroup  = "11111111-2222-3333-4444-555555555555"
)

// sizes of guests, and how often each one occurs out of a hundred.
var sizes = []struct{ vcpus, memory, often int }{
	{2, 4096, 25}, {2, 8192, 20}, {4, 16384, 20}, {4, 8192, 12}, {8, 32768, 12}, {8, 65536, 6}, {16, 65536, 5},
}

// newSite fills hosts with ten guests each in the mean. Three in four of the guests go to the first half of the hosts or
// anywhere in it, so that there is something to choose.
func newSite(hosts int) *site {
	random := rand.New(rand.NewPCG(1, uint64(hosts)))
	s := &site{used: make([]int, hosts)}
	for range hosts * siteVMs {
		vm := randomVM(random)
		const tries = 200
		for range tries {
			vm.host = random.IntN(hosts)
			if random.IntN(4) < 3 {
				vm.host = random.IntN(max(hosts/2, 1))
			}
			if s.used[vm.host]+vm.memory <= siteMemory-siteOwn-siteSpare {
				s.used[vm.host] += vm.memory
				s.vms = append(s.vms, vm)
				break
			}
		}
	}
	return s
}

func randomVM(random *rand.Rand) siteVM {
	lot := random.IntN(100)
	for _, size := range sizes {
		if lot -= size.often; lot < 0 {
			return siteVM{memory: size.memory, vcpus: size.vcpus}
		}
	}
	last := sizes[len(sizes)-1]
	return siteVM{memory: last.memory, vcpus: last.vcpus}
}

func hostName(i int) string { return fmt.Sprintf("node%05d", i) }

// htools writes the site as htools reads it (htools(1), -t): groups, nodes, instances, cluster tags and policies, with an
// empty line between them. Storage is shared.
func (s *site) htools(w io.Writer) {
	fmt.Fprintf(w, "default|%s|preferred||\n\n", siteGroup)
	for i, used := range s.used {
		role := "N"
		if i == 0 {
			role = "M"
		}
		fmt.Fprintf(w, "%s|%d|%d|%d|%d|%d|%d|%s|%s|1||N|0|1|1\n",
			hostName(i), siteMemory, siteOwn, siteMemory-siteOwn-used, siteDisk, siteDisk, siteCPUs, role, siteGroup)
	}
	fmt.Fprintln(w)
	for i, vm := range s.vms {
		fmt.Fprintf(w, "vm%06d|%d|20480|%d|running|Y|%s||ext||1|-\n", i, vm.memory, vm.vcpus, hostName(vm.host))
	}
	const policy = "131072,8,1024,1,1,1|128,1,1024,1,1,1;1048576,64,1048576,16,8,12|ext|8.0|32.0\n"
	fmt.Fprint(w, "\n\n|"+policy+"default|"+policy)
}

// What both are asked for: one VM of this size.
const (
	wantedMemory = 8192
	wantedVCPUs  = 4
)

// htoolsRequest is the question to hail (hail(1), iallocator input).
var htoolsRequest = fmt.Sprintf(`{"cluster_tags":[],"nodegroups":{},"nodes":{},"instances":{},"ipolicy":{},"version":2,`+
	`"cluster_name":"c","enabled_hypervisors":["kvm"],"request":{"type":"allocate","name":"newvm","memory":%d,"vcpus":%d,`+
	`"disks":[{"size":20480,"mode":"w","spindles":1}],"disk_space_total":20480,"disk_template":"ext","spindle_use":1,`+
	`"required_nodes":1,"tags":[],"nics":[],"os":"noop","hypervisor":"kvm"}}`, wantedMemory, wantedVCPUs)

// scenario writes the same site and the same question as Berth reads them.
func (s *site) scenario(w io.Writer) {
	fmt.Fprintf(w, "format: berth/scenario/v1\nseed: 1\nestate:\n  clusters:\n    - {name: default, cpu_ratio: %d}\n  nodes:\n", siteRatio)
	for i := range s.used {
		fmt.Fprintf(w, "    - {name: %s, cluster: default}\n", hostName(i))
	}
	fmt.Fprint(w, "nodes:\n")
	for i, used := range s.used {
		fmt.Fprintf(w, "  - {name: %s, memory: %dM, cpus: %d, available: %dM, load: 0}\n",
			hostName(i), siteMemory, siteCPUs, siteMemory-siteOwn-used)
	}
	fmt.Fprint(w, "running:\n")
	for i, vm := range s.vms {
		fmt.Fprintf(w, "  - {foreign: vm%06d, node: %s, memory: %dM, vcpus: %d}\n", i, hostName(vm.host), vm.memory, vm.vcpus)
	}
	fmt.Fprintf(w, "steps:\n  - start: {vm: newvm, memory: %dM, vcpus: %d}\n", wantedMemory, wantedVCPUs)
}

// files writes the site into a directory, for both.
func (s *site) files(dir string) (data, request, scenario string, err error) {
	data, request, scenario = filepath.Join(dir, "site.data"), filepath.Join(dir, "request.json"), filepath.Join(dir, "site.yaml")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", "", "", err
	}
	for path, write := range map[string]func(io.Writer){
		data: s.htools, scenario: s.scenario, request: func(w io.Writer) { fmt.Fprintln(w, htoolsRequest) },
	} {
		if err := writeFile(path, write); err != nil {
			return "", "", "", err
		}
	}
	return data, request, scenario, nil
}

func writeFile(path string, write func(io.Writer)) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	buffered := bufio.NewWriter(file)
	write(buffered)
	if err := buffered.Flush(); err != nil {
		return err
	}
	return file.Close()
}
