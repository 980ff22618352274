package lab

import (
	"fmt"
	"strings"
)

// Hints is what someone who has raised a lab can do with it. The argument is how they call berth-lab.
func (l *Lab) Hints(command string) string {
	option := ""
	if l.Name != "lab" {
		option = " --lab " + l.Name
	}
	var b strings.Builder
	try := func(what, format string, args ...any) {
		fmt.Fprintf(&b, "  %-34s %s\n", what, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(&b, "Lab %s is up: %d hosts, %d coordinators. Try:\n", l.Name, len(l.Hosts), len(l.Coordinators))
	if len(l.Coordinators) > 0 {
		try("a shell with the command line:", "%s shell%s", command, option)
		try("the state of the cluster:", "%s exec%s -- berth status", command, option)
		try("log a browser in (lab network):", "%s exec%s -- berth console --print", command, option)
		try("start a VM:", "%s exec%s -- berth vm start first --memory 128M --kernel %s --initrd %s --cmdline '%s'",
			command, option, Kernel, Initrd, Cmdline)
		try("move it to the best node:", "%s exec%s -- berth vm migrate first --best", command, option)
		try("see why:", "%s exec%s -- berth decision show last", command, option)
	}
	if len(l.Hosts) > 0 {
		try("look at a hypervisor:", "%s shell%s %s", command, option, l.Hosts[0].Name)
		try("what libvirt runs there:", "%s exec%s --on %s -- virsh list", command, option, l.Hosts[0].Name)
	}
	try("take it down:", "%s down %s", command, l.Name)
	return b.String()
}
