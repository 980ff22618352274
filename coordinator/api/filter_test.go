package api

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/coordinator/schema"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
	"berth/shared/units"
)

// A list has what all fields of the filter let through, and of several values of one field what one does.
func TestListsAreNarrowed(t *testing.T) {
	m := newCloud(t, 1).members[0]
	m.stand()
	client, ctx, at := m.operator(), t.Context(), m.now()
	m.declare(model.Resource{ID: "c1", Kind: model.KindCustomer, Name: "acme"})
	m.declare(model.Resource{ID: "c2", Kind: model.KindCustomer, Name: "bolt"})
	m.declare(model.Resource{ID: "d1", Kind: model.KindVDC, Name: "shop", Links: map[string]string{schema.LinkCustomer: "c1"}})
	m.addNode("n1", "hv1")
	m.addNode("n2", "hv2")
	m.addVM(model.VM{ID: "v1", Name: "web1", Desired: model.Running, Operation: "o1", VDC: "d1", Labels: []string{"web"}})
	m.addVM(model.VM{ID: "v2", Name: "web2", Desired: model.Stopped, Labels: []string{"web", "new"}})
	m.addVM(model.VM{ID: "v3", Name: "db1", Desired: model.Running, Holder: "n1", VDC: "d1"})
	m.declare(model.Resource{
		ID: "g1", Kind: model.KindGroup, Name: "front", Lists: map[string][]string{model.ListVMLabels: {"new"}},
		Members: map[string][]string{model.MembersVMs: {"v3"}},
	})
	m.update(operation.Operation{
		ID: "o1", Kind: operation.Migrate, VM: "v1", VMName: "web1", Source: "n1", Target: "n2", Phase: operation.Copying, CreatedAt: at,
	})
	m.decide("01", placement.Request{VM: "v1", VMName: "web1"})
	m.decide("02", placement.Request{VM: "v3", VMName: "db1"})
	m.reportIdle("n1", 64*units.GiB)
	_, err := client.SetNodeMaintenance(ctx, connect.NewRequest(&berthv1.SetNodeMaintenanceRequest{Node: "hv2", On: true, RequestId: "r1"}))
	m.cloud.check(err)

	type list func(*berthv1.Filter, int32, string) (names []string, next string, filtered bool, err error)
	lists := map[string]list{
		"vm": func(filter *berthv1.Filter, limit int32, token string) ([]string, string, bool, error) {
			answer, err := client.ListVMs(ctx, connect.NewRequest(&berthv1.ListVMsRequest{Filter: filter, Limit: limit, PageToken: token}))
			if err != nil {
				return nil, "", false, err
			}
			return namesOf(answer.Msg.GetVms(), (*berthv1.VM).GetName), answer.Msg.GetNextPageToken(), answer.Msg.GetFiltered(), nil
		},
		"node": func(filter *berthv1.Filter, limit int32, token string) ([]string, string, bool, error) {
			answer, err := client.ListNodes(ctx, connect.NewRequest(&berthv1.ListNodesRequest{Filter: filter, Limit: limit, PageToken: token}))
			if err != nil {
				return nil, "", false, err
			}
			return namesOf(answer.Msg.GetNodes(), (*berthv1.Node).GetName), answer.Msg.GetNextPageToken(), answer.Msg.GetFiltered(), nil
		},
		"operation": func(filter *berthv1.Filter, limit int32, token string) ([]string, string, bool, error) {
			request := &berthv1.ListOperationsRequest{Filter: filter, Limit: limit, PageToken: token}
			answer, err := client.ListOperations(ctx, connect.NewRequest(request))
			if err != nil {
				return nil, "", false, err
			}
			return namesOf(answer.Msg.GetOperations(), (*berthv1.Operation).GetId), answer.Msg.GetNextPageToken(), answer.Msg.GetFiltered(), nil
		},
		"decision": func(filter *berthv1.Filter, limit int32, token string) ([]string, string, bool, error) {
			request := &berthv1.ListDecisionsRequest{Filter: filter, Limit: limit, PageToken: token}
			answer, err := client.ListDecisions(ctx, connect.NewRequest(request))
			if err != nil {
				return nil, "", false, err
			}
			return namesOf(answer.Msg.GetDecisions(), (*berthv1.Decision).GetId), answer.Msg.GetNextPageToken(), answer.Msg.GetFiltered(), nil
		},
	}
	for _, c := range []struct {
		list   string
		filter *berthv1.Filter
		want   string
	}{
		{"vm", &berthv1.Filter{Labels: []string{"web"}}, "web1 web2"},
		{"vm", &berthv1.Filter{Labels: []string{"web"}, Customers: []string{"acme"}}, "web1"},
		{"vm", &berthv1.Filter{Customers: []string{"acme"}}, "db1 web1"},
		{"vm", &berthv1.Filter{Customers: []string{"bolt"}}, ""},
		{"vm", &berthv1.Filter{Customers: []string{"bolt", "acme"}, States: []string{"migrating", "running"}}, "web1"},
		{"vm", &berthv1.Filter{Groups: []string{"front"}}, "db1 web2"},
		{"vm", &berthv1.Filter{Nodes: []string{"hv1", "n2"}}, "db1"},
		{"vm", &berthv1.Filter{Nodes: []string{"hv2"}}, ""},
		{"vm", &berthv1.Filter{States: []string{"stopped"}}, "web2"},
		{"vm", &berthv1.Filter{States: []string{"stopped", "migrating"}}, "web1 web2"},
		{"node", &berthv1.Filter{States: []string{"up"}}, "hv1"},
		{"node", &berthv1.Filter{States: []string{"maintenance"}}, "hv2"},
		{"node", &berthv1.Filter{States: []string{"maintenance", "up"}}, "hv1 hv2"},
		{"node", &berthv1.Filter{States: []string{"draining", "fenced"}}, ""},
		{"operation", &berthv1.Filter{Nodes: []string{"hv2"}, Customers: []string{"acme"}, States: []string{"running"}}, "o1"},
		{"operation", &berthv1.Filter{States: []string{"done", "failed", "cancelled"}}, ""},
		{"operation", &berthv1.Filter{Groups: []string{"front"}}, ""},
		{"decision", &berthv1.Filter{Labels: []string{"web"}}, "01"},
		{"decision", &berthv1.Filter{Customers: []string{"acme"}}, "02 01"},
		{"decision", &berthv1.Filter{Customers: []string{"bolt"}}, ""},
	} {
		for _, limit := range []int32{0, 1} {
			var got []string
			for token, more := "", true; more; more = token != "" {
				names, next, filtered, err := lists[c.list](c.filter, limit, token)
				if err != nil || !filtered || limit > 0 && len(names) > int(limit) {
					t.Fatalf("%s by %v: %v, filtered %v, %v", c.list, c.filter, names, filtered, err)
				}
				got, token = append(got, names...), next
			}
			if got := strings.Join(got, " "); got != c.want {
				t.Errorf("%s by %v in pages of %d: %q, want %q", c.list, c.filter, limit, got, c.want)
			}
		}
	}
	for name, list := range lists {
		if names, _, filtered, err := list(nil, 0, ""); err != nil || filtered || len(names) == 0 {
			t.Errorf("%s as a whole: %v, filtered %v, %v", name, names, filtered, err)
		}
		_, _, _, err := list(&berthv1.Filter{Labels: []string{"wbe"}}, 0, "")
		wantRefusal(t, err, rpc.NotFound, "")
		_, _, _, err = list(&berthv1.Filter{States: []string{"sleeping"}}, 0, "")
		wantRefusal(t, err, rpc.Invalid, "")
		for subject, filter := range map[string]*berthv1.Filter{
			"node/hv9": {Nodes: []string{"hv1", "hv9"}}, "customer/acm": {Customers: []string{"acm"}}, "group/back": {Groups: []string{"back"}},
		} {
			_, _, _, err := list(filter, 0, "")
			if name == "node" {
				wantRefusal(t, err, rpc.Invalid, "") // nodes have none of these
				continue
			}
			wantRefusal(t, err, rpc.NotFound, subject)
		}
	}
	if _, _, _, err := lists["vm"](&berthv1.Filter{States: []string{"sleeping"}}, 0, ""); err == nil ||
		!slices.Contains(strings.Split(rpc.Detail(err).GetNextStep(), ", "), "running") {
		t.Errorf("the states there are: %v", err)
	}
}

// What has happened is narrowed by whom it is about, what it was, who did it and when. Whom it is about may be gone.
func TestHistoryIsNarrowed(t *testing.T) {
	m := newCloud(t, 1).members[0]
	client, ctx := m.operator(), t.Context()
	began := time.Now().UTC().Truncate(time.Second).Add(-12 * time.Hour) // what is older than a few days is not kept
	hour := func(n int) time.Time { return began.Add(time.Duration(n) * time.Hour) }
	m.addNode("n1", "hv1")
	m.addNode("n2", "hv2")
	m.declare(model.Resource{ID: "c1", Kind: model.KindCustomer, Name: "acme"})
	m.declare(model.Resource{ID: "d1", Kind: model.KindVDC, Name: "shop", Links: map[string]string{schema.LinkCustomer: "c1"}})
	m.addVM(model.VM{ID: "v1", Name: "web1", Desired: model.Running, VDC: "d1", Labels: []string{"web"}})
	for i, op := range []operation.Operation{
		{ID: "o1", Kind: operation.Start, VM: "v1", VMName: "web1", Target: "n1", Caller: "operator/alice"},
		{ID: "o2", Kind: operation.Migrate, VM: "v1", VMName: "web1", Source: "n1", Target: "n2", Caller: "operator/bob"},
		{ID: "o3", Kind: operation.Stop, VM: "v9", VMName: "gone", Source: "n2", Caller: "berth"},
	} {
		op.Phase, op.Result, op.CreatedAt, op.EndedAt = operation.Ended, operation.Done, hour(i+1), hour(i+1)
		if op.Kind == operation.Stop {
			op.Cancel, op.Result = true, operation.Failed
		}
		m.update(op)
		m.propose(state.Command{
			Kind: "test",
			Decisions: []placement.Decision{{
				ID: fmt.Sprintf("d%d", i+1), At: hour(i + 1), Caller: op.Caller, Outcome: placement.Placed, Winner: op.Target,
				Request: placement.Request{
					VM: op.VM, VMName: op.VMName, Purpose: []placement.Purpose{placement.ForStart, placement.ForMigrate, placement.ForDrain}[i],
				},
			}},
			Events: []model.Event{{
				At: hour(i + 1), Kind: "vm." + string(op.Kind), Subject: "vm/" + op.VMName, Caller: op.Caller, Operation: op.ID, Message: op.ID,
			}},
		})
	}
	m.propose(state.Command{Kind: "test", Events: []model.Event{
		{At: hour(4), Kind: "node.fence", Subject: "node/hv1", Message: "o4"},
		{At: hour(5), Kind: "node.held", Subject: "node/hv2", Message: "o5"},
	}})
	at := func(n int) *timestamppb.Timestamp { return timestamppb.New(hour(n)) }
	lists := map[string]func(*berthv1.Filter, int32) ([]string, bool, error){
		"operations": func(filter *berthv1.Filter, limit int32) (ids []string, filtered bool, err error) {
			for token, more := "", true; more; more = token != "" {
				request := &berthv1.ListOperationsRequest{Filter: filter, Limit: limit, PageToken: token}
				answer, err := client.ListOperations(ctx, connect.NewRequest(request))
				if err != nil {
					return nil, false, err
				}
				for _, op := range answer.Msg.GetOperations() {
					ids = append(ids, op.GetId()[1:])
				}
				token, filtered = answer.Msg.GetNextPageToken(), answer.Msg.GetFiltered()
			}
			return ids, filtered, nil
		},
		"decisions": func(filter *berthv1.Filter, limit int32) (ids []string, filtered bool, err error) {
			for token, more := "", true; more; more = token != "" {
				request := &berthv1.ListDecisionsRequest{Filter: filter, Limit: limit, PageToken: token}
				answer, err := client.ListDecisions(ctx, connect.NewRequest(request))
				if err != nil {
					return nil, false, err
				}
				for _, decision := range answer.Msg.GetDecisions() {
					ids = append(ids, decision.GetId()[1:])
				}
				token, filtered = answer.Msg.GetNextPageToken(), answer.Msg.GetFiltered()
			}
			return ids, filtered, nil
		},
		"events": func(filter *berthv1.Filter, _ int32) (ids []string, filtered bool, err error) {
			stream, err := client.WatchEvents(ctx, connect.NewRequest(&berthv1.WatchEventsRequest{Filter: filter, Backlog: 100}))
			if err != nil {
				return nil, false, err
			}
			defer stream.Close()
			for stream.Receive() {
				filtered = filtered || stream.Msg().GetFiltered()
				if event := stream.Msg().GetEvent(); event != nil {
					ids = append(ids, strings.TrimPrefix(event.GetMessage(), "o"))
				}
			}
			slices.Reverse(ids)
			return ids, filtered, stream.Err()
		},
	}
	for _, c := range []struct {
		lists  string
		filter *berthv1.Filter
		want   string
	}{
		{"operations decisions events", &berthv1.Filter{Vms: []string{"web1"}}, "2 1"},
		{"operations decisions events", &berthv1.Filter{Vms: []string{"v1"}}, "2 1"},
		{"operations decisions events", &berthv1.Filter{Vms: []string{"gone"}}, "3"},
		{"operations decisions events", &berthv1.Filter{Vms: []string{"web1", "gone"}, Callers: []string{"alice", "berth"}}, "3 1"},
		{"operations decisions events", &berthv1.Filter{Callers: []string{"operator/bob"}}, "2"},
		{"operations decisions events", &berthv1.Filter{Callers: []string{"operator"}}, ""},
		{"operations decisions events", &berthv1.Filter{Since: at(2), Until: at(4)}, "3 2"},
		{"operations decisions", &berthv1.Filter{Since: at(3)}, "3"},
		{"operations decisions events", &berthv1.Filter{Until: at(2)}, "1"},
		{"operations decisions events", &berthv1.Filter{Labels: []string{"web"}}, "2 1"},
		{"operations decisions events", &berthv1.Filter{Customers: []string{"acme"}, Since: at(2)}, "2"},
		{"operations", &berthv1.Filter{Kinds: []string{"start", "stop"}}, "3 1"},
		{"operations", &berthv1.Filter{States: []string{"cancelled"}}, "3"},
		{"operations", &berthv1.Filter{States: []string{"failed"}}, ""},
		{"decisions", &berthv1.Filter{Kinds: []string{"drain"}}, "3"},
		{"events", &berthv1.Filter{Kinds: []string{"vm"}}, "3 2 1"},
		{"events", &berthv1.Filter{Kinds: []string{"vm.start", "node"}}, "5 4 1"},
		{"events", &berthv1.Filter{Nodes: []string{"hv1"}}, "4 2 1"},
		{"events", &berthv1.Filter{Nodes: []string{"n2"}, Since: at(3)}, "5 3"},
		{"operations", &berthv1.Filter{Nodes: []string{"hv1"}, Vms: []string{"web1"}, Kinds: []string{"migrate"}}, "2"},
	} {
		for _, name := range strings.Fields(c.lists) {
			for _, limit := range []int32{0, 1} {
				got, filtered, err := lists[name](c.filter, limit)
				if err != nil || !filtered || strings.Join(got, " ") != c.want {
					t.Errorf("%s by %v in pages of %d: %q, filtered %v, %v; want %q", name, c.filter, limit, got, filtered, err, c.want)
				}
			}
		}
	}
	for name, list := range lists {
		for _, filter := range []*berthv1.Filter{
			{Since: at(3), Until: at(3)}, {Since: &timestamppb.Timestamp{Seconds: -1 << 62}}, {States: []string{"sleeping"}},
		} {
			_, _, err := list(filter, 0)
			wantRefusal(t, err, rpc.Invalid, "")
		}
		if name != "events" {
			_, _, err := list(&berthv1.Filter{Kinds: []string{"hover"}}, 0)
			wantRefusal(t, err, rpc.Invalid, "")
		}
	}
	_, err := client.ListVMs(ctx, connect.NewRequest(&berthv1.ListVMsRequest{Filter: &berthv1.Filter{Since: at(1)}}))
	wantRefusal(t, err, rpc.Invalid, "")
}

// Who follows a part of the events gets no others, and still hears that some are lost.
func TestAPartOfTheEventsIsFollowed(t *testing.T) {
	m := newCloud(t, 1).members[0]
	stream, err := m.operator().WatchEvents(t.Context(), connect.NewRequest(&berthv1.WatchEventsRequest{
		Follow: true, Backlog: 1, Filter: &berthv1.Filter{Vms: []string{"web1"}},
	}))
	m.cloud.check(err)
	defer stream.Close()
	if !stream.Receive() || !stream.Msg().GetFiltered() || stream.Msg().GetEvent() != nil {
		t.Fatalf("at first %v, %v", stream.Msg(), stream.Err())
	}
	for _, subject := range []string{"vm/web2", "node/web1", "vm/web1"} {
		m.propose(state.Command{Kind: "test", Events: []model.Event{{At: time.Now(), Kind: "vm.started", Subject: subject}}})
	}
	if !stream.Receive() || stream.Msg().GetEvent().GetSubject() != "vm/web1" {
		t.Errorf("then %v, %v", stream.Msg(), stream.Err())
	}
}
