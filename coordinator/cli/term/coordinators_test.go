package term_test

import (
	"strings"
	"testing"

	"berth/coordinator/cli/clientconfig"
	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/pki"
)

// A context follows the coordinators, as long as it names them as they name themselves.
func TestAContextListsTheCoordinatorsThatThereAre(t *testing.T) {
	f := clitest.Steady()
	w, servers := clitest.NewSite(t, f)
	first, gone := servers[0].Address, clitest.ClosedAddress(t)
	members := []*berthv1.Member{{Name: "coord1", ApiAddress: first}, {Name: "coord2", ApiAddress: "coord2:7420"}}
	f.OnMembers = func(*berthv1.ListMembersRequest) (*berthv1.ListMembersResponse, error) {
		return &berthv1.ListMembersResponse{Members: members}, nil
	}
	listed := func() string {
		c, err := clientconfig.Load(w.Config)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(c.Contexts["lab"].Coordinators, " ")
	}
	w.Context("lab", pki.RoleOperator, first, gone)
	if said := w.Run("coordinator", "list"); said.Exit != term.Done || !strings.Contains(said.ErrOut, "now lists 2 coordinators") {
		t.Errorf("exit %d, %s", said.Exit, said.ErrOut)
	}
	if got := listed(); got != first+" coord2:7420" {
		t.Errorf("the context lists %s", got)
	}
	members = []*berthv1.Member{{Name: "coord1", ApiAddress: "coord1:7420"}} // it has another address for us
	if said := w.Run("coordinator", "list"); said.Exit != term.Done || listed() != first+" coord2:7420" {
		t.Errorf("exit %d, the context lists %s", said.Exit, listed())
	}
}
