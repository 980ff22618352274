package machine

import (
	"errors"
	"time"

	"berth/coordinator/model"
	"berth/integration/faults/script"
)

// fenceHaste is how long after it was decided a device may be asked at most. Whoever leads next counts on that.
const fenceHaste = 6 * time.Second

// Why a device's word does not count.
var (
	ErrDeviceOut = errors.New("the device did not answer in time") // what is left of a call whose answer was lost
	ErrStruck    = errors.New("another machine fell silent at that moment")
	ErrReached   = errors.New("it is not off")
)

var (
	errDevice   = errors.New("the device does not answer")
	errDeviceOn = errors.New("the device says that it has switched the machine off, and then that it is on")
)

// FenceDevice is what a host is fenced with.
func FenceDevice(method model.FenceMethod) model.FenceDevice {
	device := model.FenceDevice{Method: method}
	if method == model.FenceCommand {
		device.Program, device.Timeout = "fence_sim", script.FenceTimeout
	}
	return device
}

// SwitchOff has the machine's device switch it off, and then asks whether it is off. The answer is true, or there is none. A call
// goes on when the coordinator that has made it is gone. Committed is when it was written down that the device is asked. Instead
// is the machine that a device with a wrong address strikes, if one does and that machine is heard at that time. Reached tells whether
// anybody who would be asked reaches the machine: where nobody does, a lie cannot be told from the truth, and none is told.
func (h *Machine) SwitchOff(committed time.Time, instead func() *Machine, reached func() bool, answer func(error)) {
	h.Note("device is asked", h.ID, "", "")
	if h.asked++; h.asked > 1 {
		h.Broken("fence", h.ID, "its device is asked while an earlier call is under way")
	}
	if late := h.Now.Sub(committed); late > fenceHaste {
		h.Broken("fence", h.ID, "its device is asked %s after that was written down", late)
	}
	end := func(after time.Duration, err error) {
		h.After(after, func() {
			h.asked--
			h.Note("device answers", h.ID, "", text(err))
			answer(err)
		})
	}
	takes := func() time.Duration {
		return h.Between(20*time.Millisecond, min(h.Mix.FenceTakes, script.FenceTimeout))
	}
	first := takes()
	switch {
	case h.Chance(h.Mix.FenceFails):
		end(first, errDevice)
		return
	case h.Chance(h.Mix.FenceHangs):
		if h.Chance(500) { // it has done it, and nobody is told
			h.After(first, h.fenced)
		}
		end(script.FenceTimeout, ErrDeviceOut)
		return
	}
	if h.Chance(h.Mix.FenceLies) {
		h.After(first, func() { h.lie(reached, end) })
		return
	}
	h.After(first, func() {
		struck := h
		if h.Chance(h.Mix.FenceStrikesOther) {
			if struck = instead(); struck == nil {
				end(0, errDevice)
				return
			}
			h.Draw(script.WrongMachine)
		}
		struck.fenced()
		second := takes()
		seen := h.Between(0, second/4) // the way back of the answer is the longer one: what it says may be over by then
		h.After(seen, func() {
			switch {
			case struck.On:
				end(second-seen, errDeviceOn)
			case h.Chance(h.Mix.FenceAnswersLost):
				end(script.FenceTimeout-seen, ErrDeviceOut)
			default:
				end(second-seen, nil)
			}
		})
	})
}

// lie is a device that says that the machine is off, and switches it off a while later, or never.
func (h *Machine) lie(reached func() bool, end func(time.Duration, error)) {
	if !h.On || !reached() {
		end(0, errDevice)
		return
	}
	h.Draw(script.LyingFence)
	if h.Chance(500) {
		boot := h.BootID()
		h.After(h.Between(time.Second, time.Minute), func() {
			if h.On && h.BootID() == boot {
				h.fenced()
			}
		})
	}
	end(0, nil)
}

// fenced is the machine's being switched off by its device. Somebody, or its own firmware, switches it on again.
func (h *Machine) fenced() {
	h.Note("is switched off", h.ID, "", "")
	h.PowerCut()
	back := h.Between(20*time.Second, 4*time.Minute)
	if h.Chance(500) {
		back = h.Between(10*time.Millisecond, 10*time.Second)
	}
	h.After(back, h.PowerOn) // also when all faults have ended: a call may still be under way then
}
