package faults

import (
	"errors"
	"time"

	"berth/coordinator/model"
)

// fenceTimeout is that of one call of a host's fence device; a fencing makes two.
const fenceTimeout = 10 * time.Second

// fenceHaste is how long after it was decided a device may be asked at most. Whoever leads next counts on that.
const fenceHaste = 6 * time.Second

var (
	errDevice    = errors.New("the device does not answer")
	errDeviceOn  = errors.New("the device says that it has switched the machine off, and then that it is on")
	errDeviceOut = errors.New("the device did not answer in time")
)

// fenceDevice is what a host is fenced with.
func fenceDevice(method model.FenceMethod) model.FenceDevice {
	device := model.FenceDevice{Method: method}
	if method == model.FenceCommand {
		device.Program, device.Timeout = "fence_sim", fenceTimeout
	}
	return device
}

// switchOff has the host's device switch it off, and then asks whether it is off. The answer is true, or there is none. A call
// goes on when the coordinator that has made it is gone. Committed is when it was written down that the device is asked.
func (w *World) switchOff(h *host, committed time.Time, answer func(error)) {
	w.note("device is asked", h.id, "", "")
	if h.asked++; h.asked > 1 {
		w.broken("fence", h.id, "its device is asked while an earlier call is under way")
	}
	if late := w.now.Sub(committed); late > fenceHaste {
		w.broken("fence", h.id, "its device is asked %s after that was written down", late)
	}
	end := func(after time.Duration, err error) {
		w.after(after, func() {
			h.asked--
			w.note("device answers", h.id, "", text(err))
			answer(err)
		})
	}
	takes := func() time.Duration { return w.between(20*time.Millisecond, min(w.mix.FenceTakes, fenceTimeout)) }
	first := takes()
	switch {
	case w.chance(w.mix.FenceFails):
		end(first, errDevice)
		return
	case w.chance(w.mix.FenceHangs):
		if w.chance(500) { // it has done it, and nobody is told
			w.after(first, func() { h.fenced() })
		}
		end(fenceTimeout, errDeviceOut)
		return
	}
	w.after(first, func() {
		h.fenced()
		second := takes()
		seen := w.between(0, second/4) // the way back of the answer is the longer one: what it says may be over by then
		w.after(seen, func() {
			switch {
			case h.on:
				end(second-seen, errDeviceOn)
			case w.chance(w.mix.FenceAnswersLost):
				end(fenceTimeout-seen, errDeviceOut)
			default:
				end(second-seen, nil)
			}
		})
	})
}

// fenced is the host's being switched off by its device. Somebody, or its own firmware, switches it on again.
func (h *host) fenced() {
	w := h.world
	w.note("is switched off", h.id, "", "")
	h.powerCut()
	back := w.between(20*time.Second, 4*time.Minute)
	if w.chance(500) {
		back = w.between(10*time.Millisecond, 10*time.Second)
	}
	w.later(back, h.powerOn)
}
