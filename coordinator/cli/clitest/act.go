package clitest

import (
	"strings"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// actDoing are the kinds of operation that an action comes to, and what is being done.
func actDoing(r *berthv1.ActOnVMsRequest) (kind, doing string) {
	switch r.GetAction().(type) {
	case *berthv1.ActOnVMsRequest_Pause:
		return "pause", "pausing on node2"
	case *berthv1.ActOnVMsRequest_Resume:
		return "resume", "resuming on node2"
	case *berthv1.ActOnVMsRequest_Attach:
		return "attach", "attaching disk vdb on node2"
	case *berthv1.ActOnVMsRequest_Detach:
		return "detach", "detaching disk vdb on node2"
	case *berthv1.ActOnVMsRequest_Media:
		return "media", "changing disk sda on node2"
	case *berthv1.ActOnVMsRequest_Stop:
		return "stop", "stopping on node2"
	case *berthv1.ActOnVMsRequest_Resize:
		return "resize", "changing to memory 2 GiB, 2 vCPUs on node2"
	case *berthv1.ActOnVMsRequest_Snapshot:
		return "snapshot", "taking snapshot weekly on node2"
	case *berthv1.ActOnVMsRequest_Restore:
		return "restore", "reverting to snapshot weekly on node2"
	case *berthv1.ActOnVMsRequest_Forget:
		return "forget", "deleting snapshot weekly on node2"
	default:
		return "reboot", "rebooting on node2"
	}
}

// CannedActs has one thing done to every VM but those whose names begin with db: they are paused.
func CannedActs(r *berthv1.ActOnVMsRequest) (*berthv1.ActOnVMsResponse, error) {
	answer := &berthv1.ActOnVMsResponse{SchemaVersion: "1"}
	for _, vm := range r.GetVms() {
		one := &berthv1.ActedVM{Vm: vm}
		answer.Acted = append(answer.Acted, one)
		if strings.HasPrefix(vm, "db") {
			one.Message = `VM "` + vm + `" is paused by operator/admin since 2026-07-01 11:00:00 UTC already`
			one.Error = &berthv1.ErrorDetail{Code: rpc.Conflict, NextStep: "'berth vm resume " + vm + "' lets it run"}
			continue
		}
		kind, doing := actDoing(r)
		one.Operation = CannedOperation(kind, Running)
		one.Operation.Vm, one.Operation.Source, one.Operation.Target, one.Operation.Doing = vm, "node2", "", doing
		switch kind {
		case "attach", "detach":
			one.Device = "disk vdb (fast/data.qcow2)"
		case "media":
			one.Device = "disk sda (/srv/iso/rescue.iso)"
		case "snapshot", "restore", "forget":
			one.Device = "snapshot weekly"
		case "resize":
			one.Device = "memory 2 GiB, 2 vCPUs"
		}
		switch {
		case r.GetAttach().GetNewDisk() != nil:
			one.Device = "disk vdb (" + vm + "-disk1, 20 GiB in pool fast)"
			one.Follows = []string{"it leaves node node2 with its disks only: 'berth vm migrate " + vm + " --copy-storage'"}
		case kind == "attach":
			one.Follows = []string{"it stays on node node2 from now on: fast/data.qcow2 is in no pool that is declared as shared"}
		}
		if r.GetDryRun() {
			one.Operation.Id = ""
		}
	}
	return answer, nil
}
