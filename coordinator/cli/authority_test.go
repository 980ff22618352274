package cli_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
)

// authorities are the cluster's in these states, the oldest first, and those of libvirt and QEMU.
func authorities(states ...string) []*berthv1.Authority {
	ids := []string{"8f3a01c2d4e5f60718293a4b5c6d7e8f90a1b2c3", "d41c7e9a0b2f4c6d8e1029384756a7b8c9d0e1f2"}
	all := []*berthv1.Authority{}
	for i, state := range states {
		one := &berthv1.Authority{
			Name: "cluster", Id: ids[i], State: state, Since: clitest.Ago(400 * 24 * time.Hour), Expires: clitest.Ago(-3250 * 24 * time.Hour),
		}
		if state != "retired" && state != "announced" {
			one.Dependants = int32(7 - 2*i)
		}
		if i > 0 {
			one.Since, one.By = clitest.Ago(2*time.Hour), "operator/admin"
		}
		all = append(all, one)
	}
	return append(all, &berthv1.Authority{
		Name: "libvirt", Id: "1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e", State: "issuing", Since: clitest.Ago(400 * 24 * time.Hour),
		Expires: clitest.Ago(-3250 * 24 * time.Hour),
	})
}

// progress is how far the replacement is while these are waited for.
func progress(state, waiting string, waits ...*berthv1.AuthorityWait) *berthv1.AuthorityProgress {
	is := &berthv1.AuthorityProgress{Id: "d41c7e9a0b2f4c6d8e1029384756a7b8c9d0e1f2", State: state, Waiting: waiting, Awaited: waits}
	for _, wait := range waits {
		is.Waits = append(is.Waits, wait.GetSubject())
		is.NextStep = "'berth ca rotate --force' goes on without those who are still waited for: they need a token afterwards"
	}
	return is
}

// asleep are an operator who has not called and a coordinator that is off.
func asleep() []*berthv1.AuthorityWait {
	return []*berthv1.AuthorityWait{
		{
			Subject: "coordinator/coord3", Since: clitest.Ago(2 * time.Hour),
			NextStep: "run 'systemctl start berth-coordinator' on coord3, or 'berth coordinator delete coord3'",
		},
		{
			Subject: "operator/alice", Since: clitest.Ago(2 * time.Hour), Until: clitest.Ago(-20 * 24 * time.Hour),
			NextStep: "have alice run 'berth status', or end it with 'berth identity revoke operator/alice'",
		},
	}
}

// libvirts is how far the replacement of libvirt's authority is while a node is down.
func libvirts() *berthv1.AuthorityProgress {
	is := progress("announced", "until all hosts trust it, and all coordinators have its key", &berthv1.AuthorityWait{
		Subject: "node/hv3", Since: clitest.Ago(2 * time.Hour),
		NextStep: "run 'berth-agent libvirt-tls renew' on hv3, or 'berth node delete hv3'",
	})
	is.Name = "libvirt"
	is.NextStep = "'berth ca rotate libvirt --force' goes on without those who are still waited for"
	return is
}

// What people read in each phase of the replacement of an authority, and of each thing that they may do about it.
// What a removed coordinator still has is replaced by the commands that are printed, as they are printed: all three authorities.
func TestWhoRemovesACoordinatorIsToldWhatReplacesItsKeys(t *testing.T) {
	f := clitest.Steady()
	f.OnRotate = func(*berthv1.RotateAuthorityRequest) (*berthv1.RotateAuthorityResponse, error) {
		return &berthv1.RotateAuthorityResponse{}, nil
	}
	w, _ := clitest.NewSite(t, f)
	said := w.Run("coordinator", "delete", "coord3", "--yes")
	_, next, found := strings.Cut(said.Out, "\nnext:\n")
	if said.Exit != term.Done || !found {
		t.Fatalf("exit %d, %s%s", said.Exit, said.Out, said.ErrOut)
	}
	for line := range strings.Lines(next) {
		if ran := w.Run(strings.Fields(line)[1:]...); ran.Exit != term.Done {
			t.Errorf("%s: exit %d, %s", line, ran.Exit, ran.ErrOut)
		}
	}
	var replaced []string
	for _, asked := range clitest.Asked[berthv1.RotateAuthorityRequest](f) {
		replaced = append(replaced, cmp.Or(asked.GetName(), "cluster"))
	}
	if want := []string{"cluster", "libvirt", "qemu"}; !slices.Equal(replaced, want) {
		t.Errorf("%v are replaced, want %v", replaced, want)
	}
}

func TestTheReplacementOfAnAuthorityIsToldInEachPhase(t *testing.T) {
	const trust, renewed, tokens = "until all have said that they trust it", "until all have a certificate by it",
		"until the tokens have ended that were made before, an hour at most"
	forced := progress("announced", "")
	forced.Passed = []string{"coordinator/coord3", "operator/alice"}
	forced.NextStep = "who was left behind and does not come before the old authority is retired needs a token"
	trial := progress("announced", trust)
	trial.Id, trial.Waits = "", []string{"coordinator/coord1", "node/hv1", "operator/alice"}
	for name, is := range map[string]struct {
		args   []string
		states []string
		is     *berthv1.AuthorityProgress
	}{
		"ca-list":                {[]string{"ca", "list"}, []string{"issuing"}, nil},
		"ca-list-announced":      {[]string{"ca", "list"}, []string{"issuing", "announced"}, progress("announced", trust, asleep()...)},
		"ca-list-announced-all":  {[]string{"ca", "list"}, []string{"issuing", "announced"}, progress("announced", "")},
		"ca-list-issuing":        {[]string{"ca", "list"}, []string{"outgoing", "issuing"}, progress("issuing", renewed, asleep()...)},
		"ca-list-issuing-tokens": {[]string{"ca", "list"}, []string{"outgoing", "issuing"}, progress("issuing", tokens)},
		"ca-list-retired":        {[]string{"ca", "list", "-o", "wide"}, []string{"retired", "issuing"}, nil},
		"ca-list-json": {
			[]string{"ca", "list", "-o", "json"}, []string{"issuing", "announced"}, progress("announced", trust, asleep()...),
		},
		"ca-list-libvirt":          {[]string{"ca", "list"}, []string{"issuing"}, libvirts()},
		"ca-rotate-libvirt":        {[]string{"ca", "rotate", "libvirt"}, nil, libvirts()},
		"ca-rotate-dry-run":        {[]string{"ca", "rotate", "--dry-run"}, nil, trial},
		"ca-rotate":                {[]string{"ca", "rotate"}, nil, progress("announced", trust, asleep()...)},
		"ca-rotate-cancelled":      {[]string{"ca", "rotate", "--cancel"}, nil, nil},
		"ca-rotate-forced":         {[]string{"ca", "rotate", "--force"}, nil, forced},
		"ca-rotate-forced-dry-run": {[]string{"ca", "rotate", "--force", "--dry-run"}, nil, progress("announced", trust, asleep()...)},
	} {
		t.Run(name, func(t *testing.T) {
			f := clitest.Steady()
			f.OnAuthorities = func(*berthv1.ListAuthoritiesRequest) (*berthv1.ListAuthoritiesResponse, error) {
				answer := &berthv1.ListAuthoritiesResponse{SchemaVersion: "1", Authorities: authorities(is.states...), Progress: is.is}
				if is.is.GetName() != "" {
					answer.Progress, answer.Hypervisors = nil, []*berthv1.AuthorityProgress{is.is}
					answer.Authorities = append(answer.Authorities, &berthv1.Authority{
						Name: "libvirt", Id: is.is.GetId(), State: is.is.GetState(), Since: clitest.Ago(2 * time.Hour),
						Expires: clitest.Ago(-3650 * 24 * time.Hour), By: "operator/admin",
					})
				}
				return answer, nil
			}
			f.OnRotate = func(*berthv1.RotateAuthorityRequest) (*berthv1.RotateAuthorityResponse, error) {
				return &berthv1.RotateAuthorityResponse{SchemaVersion: "1", Progress: is.is}, nil
			}
			w, _ := clitest.NewSite(t, f)
			said := w.Run(is.args...)
			if said.Exit != term.Done {
				t.Errorf("exit %d", said.Exit)
			}
			clitest.Golden(t, name+".golden", said.Out+clitest.ErrSection(said.ErrOut))
			if asked := clitest.Asked[berthv1.RotateAuthorityRequest](f); is.args[1] == "rotate" && (len(asked) != 1 ||
				asked[0].GetName() != is.is.GetName() || asked[0].GetForce() != (name == "ca-rotate-forced" || name == "ca-rotate-forced-dry-run") ||
				asked[0].GetCancel() != (name == "ca-rotate-cancelled") ||
				asked[0].GetDryRun() != (name == "ca-rotate-dry-run" || name == "ca-rotate-forced-dry-run")) {
				t.Errorf("the coordinator was asked %v", asked)
			}
		})
	}
}
