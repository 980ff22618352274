package term_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
)

// pagesOf answers with VMs vm0000 to the last one, as the API cuts them into pages.
func pagesOf(vms int) func(*berthv1.ListVMsRequest) (*berthv1.ListVMsResponse, error) {
	return func(request *berthv1.ListVMsRequest) (*berthv1.ListVMsResponse, error) {
		from, _ := strconv.Atoi(request.GetPageToken())
		to := min(from+int(request.GetLimit()), vms)
		answer := &berthv1.ListVMsResponse{SchemaVersion: "1"}
		for i := from; i < to; i++ {
			answer.Vms = append(answer.Vms, &berthv1.VM{Name: fmt.Sprintf("vm%04d", i)})
		}
		if to < vms {
			answer.NextPageToken = strconv.Itoa(to)
		}
		return answer, nil
	}
}

// A list is whole, whatever the pages are that it comes in.
func TestAListIsReadPageByPage(t *testing.T) {
	f := clitest.Steady()
	f.OnListVMs = pagesOf(1203)
	w, _ := clitest.NewSite(t, f)
	said := w.Run("vm", "list", "-o", "name")
	names := strings.Fields(said.Out)
	if said.Exit != term.Done || len(names) != 1203 || names[0] != "vm/vm0000" || names[1202] != "vm/vm1202" {
		t.Errorf("exit %d, %d names, %s", said.Exit, len(names), said.ErrOut)
	}
	for i, request := range clitest.Asked[berthv1.ListVMsRequest](f) {
		if request.GetLimit() != 500 || i > 0 && request.GetPageToken() != strconv.Itoa(i*500) {
			t.Errorf("question %d: %v", i, request)
		}
	}
	said = w.Run("vm", "list", "-o", "json")
	if strings.Contains(said.Out, "page_token") || strings.Count(said.Out, `"schema_version"`) != 1 {
		t.Errorf("the pages show in JSON: %.300s", said.Out)
	}
}

// A list of what has happened ends at its limit, in the middle of a page too.
func TestALimitedListReadsNoMoreThanItsLimit(t *testing.T) {
	f := clitest.Steady()
	f.OnListOps = func(request *berthv1.ListOperationsRequest) (*berthv1.ListOperationsResponse, error) {
		answer := &berthv1.ListOperationsResponse{SchemaVersion: "1", NextPageToken: "more"}
		for range request.GetLimit() {
			answer.Operations = append(answer.Operations, &berthv1.Operation{Id: "o", Kind: "start", Vm: "web1"})
		}
		return answer, nil
	}
	w, _ := clitest.NewSite(t, f)
	for limit, questions := range map[int]int{20: 1, 500: 1, 501: 2, 1200: 3} {
		before := len(clitest.Asked[berthv1.ListOperationsRequest](f))
		said := w.Run("operation", "list", "-o", "name", "--limit", strconv.Itoa(limit))
		if n := len(strings.Fields(said.Out)); said.Exit != term.Done || n != limit {
			t.Errorf("exit %d, %d operations, want %d; %s", said.Exit, n, limit, said.ErrOut)
		}
		if n := len(clitest.Asked[berthv1.ListOperationsRequest](f)) - before; n != questions {
			t.Errorf("%d operations took %d questions, want %d", limit, n, questions)
		}
	}
}
