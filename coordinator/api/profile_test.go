package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/profile"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
	"berth/shared/units"
)

// A profile is what nodes tell: of a VM those that it was on last, of a node that one. What one of them does not tell is said.
func TestAProfileIsAskedOfTheNodes(t *testing.T) {
	d := newDeclarer(t)
	for i := range 3 {
		d.m.addNode(fmt.Sprint("n", i+1), fmt.Sprint("hv", i+1))
	}
	at := time.Date(2026, time.March, 2, 5, 0, 0, 0, time.UTC)
	d.m.addVM(model.VM{ID: "v1", Name: "web", Desired: model.Running, Holder: "n2", Epoch: 3})
	d.m.addVM(model.VM{ID: "v2", Name: "new", Desired: model.Stopped})
	for i, op := range []operation.Operation{
		{ID: "o1", VM: "v1", VMName: "web", Kind: operation.Migrate, Source: "n1", Target: "n2", Epoch: 3, Result: operation.Done},
		{ID: "o2", VM: "v1", VMName: "web", Kind: operation.Migrate, Source: "n2", Target: "n3", Epoch: 4, Result: operation.Failed},
		{ID: "o3", VM: "v1", VMName: "web", Kind: operation.Start, Target: "n9", Epoch: 1, Result: operation.Done}, // is removed
		{ID: "o4", VM: "v2", VMName: "new", Kind: operation.Start, Target: "n3", Epoch: 1, Result: operation.Failed},
	} {
		ended := at.Add(time.Duration(i) * time.Minute)
		op.Phase, op.CreatedAt, op.UpdatedAt, op.EndedAt = operation.Ended, ended, ended, ended
		d.m.update(op)
	}
	var asked string
	silent := 0
	d.m.control.week = func(nodes []string, vm string) (profile.Told, []string) {
		asked = strings.Join(nodes, " ") + " of " + vm
		hours := []profile.Hour{{Began: at, Node: "hv1", CPU: new(1.5), Memory: new(units.Bytes(1 << 30))}}
		if silent > 0 {
			return profile.Told{Hours: hours[min(silent-1, 1):]}, nodes[:silent]
		}
		return profile.Told{Hours: hours, Minutes: []profile.Hour{{Began: at.Add(time.Minute), Node: "hv1", CPU: new(0.5)}}}, nil
	}
	ask := func(request *berthv1.ProfileRequest) (*berthv1.ProfileResponse, error) {
		answer, err := d.client.Profile(t.Context(), connect.NewRequest(request))
		if err != nil {
			return nil, err
		}
		return answer.Msg, nil
	}
	told, err := ask(&berthv1.ProfileRequest{Vm: "web"})
	if err != nil || asked != "n2 n1 of v1" {
		t.Fatalf("asked was %s; %v", asked, err)
	}
	if hours := told.GetHours(); told.GetVm() != "web" || len(hours) != 1 || hours[0].GetNode() != "hv1" || hours[0].GetCpuRatio() != 1.5 ||
		hours[0].GetMemoryBytes() != 1<<30 || hours[0].VcpuDelayRatio != nil || !hours[0].GetBeganAt().AsTime().Equal(at) {
		t.Errorf("told was %v", told)
	}
	if minutes := told.GetMinutes(); len(minutes) != 1 || minutes[0].GetCpuRatio() != 0.5 || minutes[0].MemoryBytes != nil ||
		!minutes[0].GetBeganAt().AsTime().Equal(at.Add(time.Minute)) {
		t.Errorf("of the last hour told was %v", minutes)
	}
	told, err = ask(&berthv1.ProfileRequest{Node: "hv3"})
	if err != nil || asked != "n3 of " || told.GetNode() != "hv3" || len(told.GetHours()) != 1 {
		t.Errorf("asked was %s, told %v; %v", asked, told, err)
	}
	if told, err = ask(&berthv1.ProfileRequest{Vm: "new"}); err != nil || asked != " of v2" {
		t.Errorf("asked was %s, told %v; %v", asked, told, err)
	}
	silent = 1
	if told, err = ask(&berthv1.ProfileRequest{Vm: "web"}); err != nil || len(told.GetWarnings()) != 1 || len(told.GetHours()) != 1 {
		t.Errorf("when one of them is silent: %v, %v", told, err)
	}
	silent = 2
	_, err = ask(&berthv1.ProfileRequest{Vm: "web"})
	wantRefusal(t, err, rpc.Unavailable, "vm/web")
	silent = 1
	_, err = ask(&berthv1.ProfileRequest{Node: "hv1"})
	wantRefusal(t, err, rpc.Unavailable, "node/hv1")
	_, err = ask(&berthv1.ProfileRequest{Vm: "nobody"})
	wantRefusal(t, err, rpc.NotFound, "vm/nobody")
	for _, request := range []*berthv1.ProfileRequest{{}, {Vm: "web", Node: "hv1"}} {
		_, err = ask(request)
		wantRefusal(t, err, rpc.Invalid, "vm")
	}
}
