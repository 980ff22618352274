package guestlog

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// DefaultNote is where root notes what the logs say, in the agent's runtime directory.
const DefaultNote = "/run/berth-agent/departed.json"

// noteFresh is how long a note counts: it is made for the agent that begins right after.
const noteFresh = time.Minute

type note struct {
	At   time.Time `json:"at"`
	Left []string  `json:"left"` // UUIDs
}

// Note writes down which guests have left by their logs in a folder. The agent may not read these, so its unit has root do this before
// each start: a guest that left while no agent was there is none that ran on and ended. A host without logs has no such guests.
func Note(folder, path string, now time.Time) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	logs, err := filepath.Glob(filepath.Join(folder, "*.log"))
	if err != nil {
		return err
	}
	is := note{At: now, Left: []string{}}
	for _, log := range logs {
		text, err := tail(log)
		if err != nil {
			return err
		}
		if uuid, left := endOf(text); left {
			is.Left = append(is.Left, uuid)
		}
	}
	text, err := json.Marshal(is)
	if err != nil {
		return err
	}
	// The folder is the agent's: a link that it may have put there is not followed.
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("note which guests have left: %w", err)
	}
	_, err = file.Write(text)
	return errors.Join(err, file.Close())
}

// noted are the guests that had left by a note; none if there is no fresh one.
func noted(path string, now time.Time) map[string]bool {
	text, err := os.ReadFile(path)
	var is note
	if err != nil || json.Unmarshal(text, &is) != nil || now.Sub(is.At).Abs() > noteFresh {
		return nil
	}
	left := map[string]bool{}
	for _, uuid := range is.Left {
		left[uuid] = true
	}
	return left
}
