package placement

import "berth/coordinator/view"

// Warnings say in words how the vCPUs of the node that a decision chose come to more than it has, with those of the VM.
func Warnings(d *Decision) []string {
	if d.Warnings != nil || d.Inputs == nil || d.Winner == "" {
		return d.Warnings
	}
	node, kept := d.Inputs.Index(d.Winner)
	if !kept || node >= min(len(d.Inputs.VCPULimit), d.Inputs.VCPUs.Len()) {
		return nil
	}
	more := d.Request.VCPUs
	if d.Request.Unit != nil {
		more += d.Request.Unit.VCPUs
	}
	crowd := crowdOf(&d.Inputs.Figures, node, &d.Request)
	crowd.VCPUs += more
	return view.Crowding([]view.Crowd{crowd})
}

// crowdOf is a node as its figures are, and as wide as the request is.
func crowdOf(figures *view.Figures, node int, request *Request) view.Crowd {
	crowd := view.Crowd{
		Node: figures.Names[node], Limit: figures.VCPULimit[node], VCPUs: figures.VCPUs.At(node), Widest: request.VCPUs, VM: request.VMName,
	}
	if crowd.Node == "" {
		crowd.Node = figures.IDs[node]
	}
	if figures.CPUs != nil {
		crowd.CPUs = figures.CPUs[node]
	}
	return crowd
}

// crowded says the same of the nodes that took VMs like the requested one.
func crowded(columns *view.Columns, counts []int, request *Request) []string {
	var crowds []view.Crowd
	for node := range counts {
		if counts[node] > 0 {
			crowds = append(crowds, crowdOf(&columns.Figures, node, request))
		}
	}
	return view.Crowding(crowds)
}
