package inventory

import (
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
)

// What ails a host makes its node degraded, since when its agent says.
func TestWhatAilsAHostIsKnownSinceWhen(t *testing.T) {
	now := time.Now()
	s := New(func() time.Time { return now }, hclog.NewNullLogger())
	session, err := s.OpenSession("n1", &berthv1.Hello{NodeId: "n1", Incarnation: "boot/1"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	sequence := uint64(1)
	for i, c := range []struct {
		status *berthv1.LibvirtStatus
		is     model.Liveness
		why    string
		since  time.Duration
	}{
		{&berthv1.LibvirtStatus{Connected: true}, model.Up, "", 0},
		{
			&berthv1.LibvirtStatus{Connected: true, Ailments: []string{"the disk: no answer"}, SinceSeconds: 90},
			model.Degraded, "the disk: no answer", 90 * time.Second,
		},
		{
			&berthv1.LibvirtStatus{Error: "hangs", Ailments: []string{"the disk: no answer"}, SinceSeconds: 90},
			model.Degraded, "libvirt cannot be used: hangs; the disk: no answer", 90 * time.Second,
		},
		{&berthv1.LibvirtStatus{Connected: true}, model.Up, "", 0},
		{&berthv1.LibvirtStatus{Error: "hangs"}, model.Degraded, "libvirt cannot be used: hangs", 0}, // an older agent
	} {
		sequence++
		session.Report(&berthv1.SessionRequest{Sequence: sequence, Message: &berthv1.SessionRequest_Libvirt{Libvirt: c.status}})
		facts := s.Facts("n1", now)
		if facts.Liveness != c.is || facts.LivenessReason != c.why {
			t.Errorf("%d: it is %s: %s", i, facts.Liveness, facts.LivenessReason)
		}
		if c.is == model.Up != facts.SickSince.IsZero() || c.is == model.Degraded && now.Sub(facts.SickSince) != c.since {
			t.Errorf("%d: it is sick since %s", i, now.Sub(facts.SickSince))
		}
	}
}
