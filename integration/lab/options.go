package lab

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"berth/shared/units"
)

// Options says what to raise.
type Options struct {
	Name         string        // letters and digits; part of the directory's name; default "lab"
	Hosts        int           // hypervisors, 0 to 200
	Coordinators int           // 0 for a lab of hypervisors only, at most 5
	HostMemory   []units.Bytes // of the hosts in turn, over and over; default 4 GiB each
	HostReserve  units.Bytes   // part of it that is never free, default 512 MiB
	Binaries     string        // directory of berth and berth-agent, default bin/ of the module
	LocalPool    units.Bytes   // room in the hosts' storage pool "local"; 0: as much as this machine's disk has
	PassInterval time.Duration // between the leader's looks at how well VMs are placed; default as the product's, a minute
	Bare         bool          // raise coordinators and hosts, but leave Berth on them unconfigured and stopped
	Keep         bool          // the lab outlives this process, until Down or `berth-lab down`
	Log          io.Writer     // what is being done, a line each; default none
}

var validName = regexp.MustCompile(`^[A-Za-z0-9]{1,20}$`)

// complete fills in the defaults and refuses what cannot be raised.
func (o Options) complete() (Options, error) {
	if o.Name == "" {
		o.Name = "lab"
	}
	if len(o.HostMemory) == 0 {
		o.HostMemory = []units.Bytes{4 * units.GiB}
	}
	if o.HostReserve == 0 {
		o.HostReserve = 512 * units.MiB
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	switch {
	case !validName.MatchString(o.Name):
		return o, fmt.Errorf("lab name %q: want up to 20 letters and digits", o.Name)
	case o.Hosts < 0 || o.Hosts > 200 || o.Coordinators < 0 || o.Coordinators > 5:
		return o, fmt.Errorf("a lab of %d hosts and %d coordinators is out of range", o.Hosts, o.Coordinators)
	case o.HostReserve < 0 || slices.Min(o.HostMemory) <= o.HostReserve:
		return o, fmt.Errorf("a host of %v with %v reserved has no memory", slices.Min(o.HostMemory), o.HostReserve)
	case o.LocalPool < 0:
		return o, fmt.Errorf("a storage pool of %v has no room", o.LocalPool)
	case os.Geteuid() != 0:
		return o, errors.New("a lab needs root: it makes namespaces and mounts")
	}
	for _, tool := range []string{"ip", "nft", "nsenter", "bash"} {
		if _, err := exec.LookPath(tool); err != nil {
			return o, fmt.Errorf("%w; install what a lab needs with: make deps", err)
		}
	}
	if o.Binaries == "" {
		root, err := moduleRoot()
		if err != nil {
			return o, err
		}
		o.Binaries = filepath.Join(root, "bin")
	}
	var err error
	if o.Binaries, err = filepath.Abs(o.Binaries); err != nil {
		return o, err
	}
	for _, binary := range []struct {
		name   string
		wanted bool
	}{{"berth", o.Coordinators > 0}, {"berth-agent", o.Coordinators > 0 && o.Hosts > 0}} {
		if _, err := os.Stat(filepath.Join(o.Binaries, binary.name)); binary.wanted && err != nil {
			return o, fmt.Errorf("%w; build it with: make build", err)
		}
	}
	return o, nil
}

// moduleRoot is the directory of go.mod, upwards from the working directory.
func moduleRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == "/" {
			return "", fmt.Errorf("no go.mod in %s or above it: say where the binaries are", start)
		}
	}
}
