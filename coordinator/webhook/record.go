package webhook

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"berth/coordinator/history"
	"berth/coordinator/seal"
	"berth/coordinator/state"
)

// Bounds of what is kept.
const (
	MaxWebhooks = 32
	MaxDead     = 200 // of one webhook; the oldest go
	maxReason   = 300 // bytes
)

// Webhook is the record of one. It changes only by being removed.
type Webhook struct {
	Name      string      `json:"name"`
	URL       string      `json:"url"`
	Kinds     []string    `json:"kinds,omitempty"` // patterns; none: all
	Secret    seal.Secret `json:"secret"`
	CA        string      `json:"ca,omitempty"` // PEM
	HTTP      bool        `json:"http,omitempty"`
	Local     bool        `json:"local,omitempty"`
	CreatedBy string      `json:"created_by"`
	CreatedAt time.Time   `json:"created_at"`
}

// Progress is the record of how far a webhook is. It is written rarely: what was taken since is sent once more by the next leader.
type Progress struct {
	After   history.Place `json:"after"` // all up to here was taken or given up
	Dead    []Dead        `json:"dead,omitempty"`
	Dropped uint64        `json:"dropped,omitempty"` // of Dead, for its bound
	Lost    uint64        `json:"lost,omitempty"`    // entries of the log that nobody had
}

// Dead is a delivery that was given up.
type Dead struct {
	history.Place
	ID      string    `json:"id"`
	Kind    string    `json:"kind"`
	Subject string    `json:"subject"`
	At      time.Time `json:"at"`
	Tries   int       `json:"tries"`
	Reason  string    `json:"reason"`
	Again   bool      `json:"again,omitempty"` // somebody has asked to try it again
}

// The records are values of the state's table of single values, which every release keeps, whatever their keys are.
const (
	recordPrefix   = "webhook/"
	progressPrefix = "webhook-progress/"
)

// Names are those of all webhooks, in order.
func Names(x *state.Snapshot) []string {
	names := x.MetaUnder(recordPrefix)
	for i := range names {
		names[i] = names[i][len(recordPrefix):]
	}
	return names
}

// Of is a webhook and how far it is.
func Of(x *state.Snapshot, name string) (w Webhook, p Progress, known bool) {
	text := x.Meta(recordPrefix + name)
	if text == "" || json.Unmarshal([]byte(text), &w) != nil {
		return Webhook{}, Progress{}, false
	}
	_ = json.Unmarshal([]byte(x.Meta(progressPrefix+name)), &p) // one that is not there begins at the beginning
	return w, p, true
}

// Put makes a command store a webhook and how far it is. It is refused if either is another one by then.
func Put(x *state.Snapshot, command *state.Command, w *Webhook, p *Progress) error {
	for key, record := range map[string]any{recordPrefix + w.Name: w, progressPrefix + w.Name: p} {
		text, err := json.Marshal(record)
		if err != nil {
			return fmt.Errorf("write the record of webhook %s: %w", w.Name, err)
		}
		if command.Meta == nil {
			command.Meta = make(map[string]string)
		}
		command.Expect = append(command.Expect, expect(x, key))
		if string(text) != x.Meta(key) {
			command.Meta[key] = string(text)
		}
	}
	slices.SortFunc(command.Expect, func(a, b state.Expectation) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return nil
}

// Remove makes a command forget a webhook.
func Remove(x *state.Snapshot, command *state.Command, name string) {
	for _, key := range []string{recordPrefix + name, progressPrefix + name} {
		if x.MetaRevision(key) > 0 {
			command.Expect = append(command.Expect, expect(x, key))
			command.Delete = append(command.Delete, state.Record{Table: state.Meta, ID: key})
		}
	}
}

func expect(x *state.Snapshot, key string) state.Expectation {
	return state.Expectation{Table: state.Meta, ID: key, Revision: x.MetaRevision(key)}
}

// bury puts a delivery on the list of those that were given up.
func (p *Progress) bury(dead Dead) {
	dead.Again = false
	if at := slices.IndexFunc(p.Dead, func(d Dead) bool { return d.ID == dead.ID }); at >= 0 {
		p.Dead[at] = dead
		return
	}
	p.Dead = append(p.Dead, dead)
	if over := len(p.Dead) - MaxDead; over > 0 {
		p.Dead, p.Dropped = p.Dead[over:], p.Dropped+uint64(over)
	}
}

// raise takes a delivery from that list.
func (p *Progress) raise(id string) {
	p.Dead = slices.DeleteFunc(p.Dead, func(d Dead) bool { return d.ID == id })
}

// subjectOfSecret is what a webhook's secret is sealed for.
func subjectOfSecret(name string) string { return "webhook/" + name }

// Hide seals the secret of a webhook.
func (w *Webhook) Hide(keys seal.Keys, secret []byte) (err error) {
	w.Secret, err = keys.Hide(subjectOfSecret(w.Name), secret)
	return err
}
