package faults

import (
	"time"

	"berth/integration/faults/script"
	berthv1 "berth/shared/gen/berth/v1"
)

// hangLong lets the libvirtd of a host hang for many minutes. Its guests run on, and its agent says what is wrong. FAULTS.md, W16.
func hangLong(w *World, what script.Happening, h *host) {
	if !h.On || h.Frozen || h.Hung || !h.Up {
		return
	}
	w.Draw(script.Sick)
	h.Hang()
	w.Later(what.For, h.Unhang)
}

// health is what an agent tells of its libvirtd, where sites want to know.
func (s *session) health() {
	h := s.life.host
	if h.world.sickAfter == 0 {
		return
	}
	status := &berthv1.LibvirtStatus{Connected: h.Up && !h.Hung}
	switch {
	case status.GetConnected() && !h.sickFrom.IsZero():
		h.sickFrom, h.sickTill = time.Time{}, h.world.Now
	case status.GetConnected():
	case h.sickFrom.IsZero():
		h.sickFrom = h.world.Now
	}
	if !h.sickFrom.IsZero() {
		status.SinceSeconds = h.world.Now.Sub(h.sickFrom).Seconds()
	}
	s.send(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_Libvirt{Libvirt: status}})
}

// isSick tells whether the agent of a host has said for long enough that its libvirtd does not answer, or did when that was decided.
func (r *rules) isSick(node string) bool {
	h := r.host(node)
	till := h.sickFrom.IsZero() && r.Now.Sub(h.sickTill) < 12*untilLogged // the leader may not have heard that
	return r.sickAfter > 0 && (till || !h.sickFrom.IsZero() && r.Now.Sub(h.sickFrom) >= r.sickAfter-untilLogged)
}
