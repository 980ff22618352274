package model

import (
	"encoding/json"
	"time"
)

// HAPause is somebody's word that nothing is fenced or restarted by itself, for a while.
type HAPause struct {
	Reason string    `json:"reason"`
	Caller string    `json:"caller"`
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until,omitzero"` // zero: until somebody says so
}

// MetaHAPause is the key of the replicated record of a pause; absent: there is none.
const MetaHAPause = "ha_pause"

// HAPauseOf reads a pause as it is stored. It reports false if there is none, or if it is over at a time.
func HAPauseOf(stored string, at time.Time) (pause HAPause, paused bool) {
	if stored == "" || json.Unmarshal([]byte(stored), &pause) != nil {
		return HAPause{}, false
	}
	return pause, pause.Until.IsZero() || at.Before(pause.Until)
}

// Stored is how it is stored.
func (p HAPause) Stored() string {
	text, _ := json.Marshal(p) // texts and times: it cannot fail
	return string(text)
}

// Why is for people.
func (p HAPause) Why() string { return "high availability is paused by " + p.Caller + ": " + p.Reason }

// HAResume says how it goes on.
const HAResume = "'berth ha resume' lets it go on"
