package format

import (
	"fmt"
	"strings"

	"berth/coordinator/model"
)

// Measurement is one figure that a node measures of itself.
type Measurement struct {
	Name    string
	example string
	means   string
	At      func(*model.NodeFacts) **float64
}

// Measurements are in the order in which documents have them. Reading, writing and describing a scenario follow from them.
var Measurements = []Measurement{
	{"load", "2.5", "load average over a minute; 0 if left out", func(f *model.NodeFacts) **float64 { return &f.Load1 }},
	{
		"busy", "0.15", "busy share of the CPUs, for a node whose load is unknown",
		func(f *model.NodeFacts) **float64 { return &f.CPUBusy },
	},
	{
		"cpu_pressure", "3", "percent of time in which work waits for a CPU",
		func(f *model.NodeFacts) **float64 { return &f.CPUPressure },
	},
	{
		"memory_pressure", "1", "percent of time in which work waits for memory",
		func(f *model.NodeFacts) **float64 { return &f.MemoryPressure },
	},
	{
		"vcpu_delay", "5", "percent of time in which the vCPUs of its VMs wait for a CPU",
		func(f *model.NodeFacts) **float64 { return &f.VCPUDelay },
	},
}

// measure writes what was measured of a node.
func (r *row) measure(facts *model.NodeFacts) {
	for _, one := range Measurements {
		r.number(one.Name, *one.At(facts))
	}
}

// describeMeasurements writes a line about each measurement, for the description of a node in Schema.
func describeMeasurements() string {
	var text strings.Builder
	for _, one := range Measurements {
		fmt.Fprintf(&text, "        %-16s %s\n", one.Name+": "+one.example, one.means)
	}
	return text.String()
}
