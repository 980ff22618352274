package api

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/api/answer"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// walk reads a list page by page, at most limit things each, and returns how many each page had and all names.
func walk(t *testing.T, limit int32, ask func(limit int32, token string) (names []string, next string)) (sizes []int, all []string) {
	t.Helper()
	for token := ""; len(sizes) < 20; {
		names, next := ask(limit, token)
		sizes, all = append(sizes, len(names)), append(all, names...)
		if token = next; token == "" {
			return sizes, all
		}
	}
	t.Fatalf("no end after %v", sizes)
	return nil, nil
}

func namesOf[T any](things []T, name func(T) string) []string {
	names := make([]string, 0, len(things))
	for _, thing := range things {
		names = append(names, name(thing))
	}
	return names
}

// Every list comes in pages of 500 at most, and its pages together are the whole list in its order.
func TestListsComeInPages(t *testing.T) {
	m := newCloud(t, 1).members[0]
	client, ctx := m.operator(), t.Context()
	at := time.Now().UTC()
	for i := range 5 {
		m.addNode(fmt.Sprint("n", i), fmt.Sprint("hv", 4-i))
		m.addVM(model.VM{ID: fmt.Sprint("v", i), Name: fmt.Sprint("web", 4-i), Desired: model.Stopped})
		m.decide(fmt.Sprint("0", i), placement.Request{VM: "v1", VMName: "web3"})
	}
	for _, id := range []string{"o3", "o1", "o2"} { // at the same time: by ID
		m.begin(operation.Operation{
			ID: id, Kind: operation.Migrate, VM: "w" + id, VMName: "x" + id, Phase: operation.Copying, CreatedAt: at, UpdatedAt: at,
		})
	}
	m.begin(operation.Operation{
		ID: "o0", Kind: operation.Migrate, VM: "wo0", VMName: "xo0", Phase: operation.Copying, CreatedAt: at.Add(time.Second), UpdatedAt: at,
	})

	lists := map[string]func(limit int32, token string) ([]string, string, error){
		"nodes": func(limit int32, token string) ([]string, string, error) {
			answer, err := client.ListNodes(ctx, connect.NewRequest(&berthv1.ListNodesRequest{Limit: limit, PageToken: token}))
			if err != nil {
				return nil, "", err
			}
			return namesOf(answer.Msg.GetNodes(), (*berthv1.Node).GetName), answer.Msg.GetNextPageToken(), nil
		},
		"VMs": func(limit int32, token string) ([]string, string, error) {
			answer, err := client.ListVMs(ctx, connect.NewRequest(&berthv1.ListVMsRequest{Limit: limit, PageToken: token}))
			if err != nil {
				return nil, "", err
			}
			return namesOf(answer.Msg.GetVms(), (*berthv1.VM).GetName), answer.Msg.GetNextPageToken(), nil
		},
		"resources": func(limit int32, token string) ([]string, string, error) {
			answer, err := client.ListResources(ctx, connect.NewRequest(&berthv1.ListResourcesRequest{Limit: limit, PageToken: token}))
			if err != nil {
				return nil, "", err
			}
			return namesOf(answer.Msg.GetResources(), func(r *berthv1.Resource) string { return r.GetKind() + "/" + r.GetName() }),
				answer.Msg.GetNextPageToken(), nil
		},
		"operations": func(limit int32, token string) ([]string, string, error) {
			answer, err := client.ListOperations(ctx, connect.NewRequest(&berthv1.ListOperationsRequest{Limit: limit, PageToken: token}))
			if err != nil {
				return nil, "", err
			}
			return namesOf(answer.Msg.GetOperations(), (*berthv1.Operation).GetId), answer.Msg.GetNextPageToken(), nil
		},
		"decisions": func(limit int32, token string) ([]string, string, error) {
			answer, err := client.ListDecisions(ctx, connect.NewRequest(&berthv1.ListDecisionsRequest{Limit: limit, PageToken: token, Vm: "web3"}))
			if err != nil {
				return nil, "", err
			}
			return namesOf(answer.Msg.GetDecisions(), (*berthv1.Decision).GetId), answer.Msg.GetNextPageToken(), nil
		},
	}
	want := map[string][]string{
		"nodes":      {"hv0", "hv1", "hv2", "hv3", "hv4"},
		"VMs":        {"web0", "web1", "web2", "web3", "web4", "xo0", "xo1", "xo2", "xo3"},
		"operations": {"o0", "o3", "o2", "o1"},
		"decisions":  {"04", "03", "02", "01", "00"},
	}
	for name, list := range lists {
		t.Run(name, func(t *testing.T) {
			ask := func(limit int32, token string) ([]string, string) {
				names, next, err := list(limit, token)
				if err != nil {
					t.Fatal(err)
				}
				return names, next
			}
			whole, next := ask(0, "")
			if next != "" || want[name] != nil && !slices.Equal(whole, want[name]) {
				t.Errorf("the whole list is %v, and then %q", whole, next)
			}
			for limit := int32(1); int(limit) <= len(whole)+1; limit++ {
				sizes, all := walk(t, limit, ask)
				pages := (len(whole) + int(limit) - 1) / int(limit)
				if !slices.Equal(all, whole) || len(sizes) != pages || slices.Max(sizes) > int(limit) {
					t.Errorf("pages of %d: %v in %v", limit, all, sizes)
				}
			}
			for _, token := range []string{"!", "a"} {
				_, _, err := list(1, token)
				wantRefusal(t, err, rpc.Invalid, "")
			}
			_, _, err := list(-1, "")
			wantRefusal(t, err, rpc.Invalid, "")
		})
	}
}

// What goes or comes between two pages makes nothing else be missed or come twice.
func TestAListThatChangesBetweenPages(t *testing.T) {
	m := newCloud(t, 1).members[0]
	client, ctx := m.operator(), t.Context()
	for _, name := range []string{"b", "d", "f", "h"} {
		m.addVM(model.VM{ID: "id-" + name, Name: name, Desired: model.Stopped})
	}
	page := func(token string) ([]string, string) {
		answer, err := client.ListVMs(ctx, connect.NewRequest(&berthv1.ListVMsRequest{Limit: 2, PageToken: token}))
		if err != nil {
			t.Fatal(err)
		}
		return namesOf(answer.Msg.GetVms(), (*berthv1.VM).GetName), answer.Msg.GetNextPageToken()
	}
	first, token := page("")
	gone, _ := m.store.Snapshot().VM("id-d") // where the page ends
	m.propose(state.Command{
		Kind: "test", Expect: []state.Expectation{{Table: state.VMs, ID: gone.ID, Revision: gone.Revision}},
		Delete: []state.Record{{Table: state.VMs, ID: gone.ID}},
	})
	m.addVM(model.VM{ID: "id-a", Name: "a", Desired: model.Stopped})
	m.addVM(model.VM{ID: "id-e", Name: "e", Desired: model.Stopped})
	second, token := page(token)
	third, end := page(token)
	if got := slices.Concat(first, second, third); !slices.Equal(got, []string{"b", "d", "e", "f", "h"}) || end != "" {
		t.Errorf("read %v, then %q", got, end)
	}
}

// A page has 500 things at most, whatever is asked for.
func TestAPageHasFiveHundredAtMost(t *testing.T) {
	var all []string
	for i := range 1203 {
		all = append(all, fmt.Sprintf("%04d", i))
	}
	page, err := answer.PageOf(&berthv1.ListVMsRequest{Limit: 9999}, answer.MaxList)
	if err != nil {
		t.Fatal(err)
	}
	key := func(one string) string { return one }
	part, next := answer.Cut(all, page, answer.Ascending, key)
	if len(part) != 500 || next == "" {
		t.Errorf("%d, then %q", len(part), next)
	}
	if page, err = answer.PageOf(&berthv1.ListVMsRequest{PageToken: next}, answer.MaxList); err != nil || page.Limit != 500 {
		t.Fatalf("%+v, %v", page, err)
	}
	if part, _ = answer.Cut(all, page, answer.Ascending, key); len(part) != 500 || part[0] != "0500" {
		t.Errorf("%d, from %s on", len(part), part[0])
	}
}
