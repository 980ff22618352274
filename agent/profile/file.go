package profile

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"berth/shared/week"
)

// format is what the file says that it is.
const format = "berth weekly profiles 1"

// mostText bounds what is read of a file: more than this is not one that a keeper has written.
const mostText = 16 << 20

// ErrNoProfiles is of a file that is damaged, of another node or of another release.
var ErrNoProfiles = errors.New("these are not this node's profiles")

// Kept is a copy of what a keeper knows, as it stands in a file.
type Kept struct {
	Format string                 `json:"format"`
	Of     string                 `json:"node"` // its ID: the file may have come with a copy of another machine's disk
	Hour   int64                  `json:"hour"`
	Node   keptSubject            `json:"own"`
	Guests map[string]keptSubject `json:"guests"`
}

type keptSubject struct {
	Last    int64      `json:"last,omitempty"`
	Weeks   []uint16   `json:"weeks"`
	Codes   [][]uint16 `json:"codes"` // for each figure, for each hour
	Running *keptHour  `json:"running,omitempty"`
}

type keptHour struct {
	Minutes []uint64         `json:"minutes"`
	Bins    []map[int]uint16 `json:"bins"`
}

// Copy is what a keeper of a node knows by now.
func (k *Keeper) Copy(node string) *Kept {
	kept := &Kept{Format: format, Of: node, Hour: k.hour, Node: k.node.copy(), Guests: make(map[string]keptSubject, len(k.guests))}
	for id, one := range k.guests {
		kept.Guests[id] = one.copy()
	}
	return kept
}

func (s *subject) copy() keptSubject {
	weeks := s.weeks
	kept := keptSubject{Last: s.last, Weeks: weeks[:]}
	for f := range figures {
		codes := make([]uint16, week.Hours)
		for at := range codes {
			codes[at] = s.codes[at][f]
		}
		kept.Codes = append(kept.Codes, codes)
	}
	if s.running == nil {
		return kept
	}
	minutes := s.running.minutes
	kept.Running = &keptHour{Minutes: minutes[:]}
	for f := range figures {
		counts := map[int]uint16{}
		for bin, count := range s.running.bins[f] {
			if count > 0 {
				counts[bin] = count
			}
		}
		kept.Running.Bins = append(kept.Running.Bins, counts)
	}
	return kept
}

// Encode is what is written into the file.
func (k *Kept) Encode() ([]byte, error) {
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	if err := json.NewEncoder(packed).Encode(k); err != nil {
		return nil, fmt.Errorf("encode the profiles: %w", err)
	}
	if err := packed.Close(); err != nil {
		return nil, fmt.Errorf("pack the profiles: %w", err)
	}
	return out.Bytes(), nil
}

// Decode makes a keeper of what a node has written into its file. Any other one is ErrNoProfiles.
func Decode(data []byte, node string) (*Keeper, error) {
	packed, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoProfiles, err)
	}
	text, err := io.ReadAll(io.LimitReader(packed, mostText+1)) // it ends with a checksum, which is compared
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrNoProfiles, err)
	case len(text) > mostText:
		return nil, fmt.Errorf("%w: the file has more than %d bytes when it is unpacked", ErrNoProfiles, mostText)
	}
	var kept Kept
	if err := json.Unmarshal(text, &kept); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoProfiles, err)
	}
	switch {
	case kept.Format != format:
		return nil, fmt.Errorf("%w: the file says %q, not %q", ErrNoProfiles, kept.Format, format)
	case kept.Of != node:
		return nil, fmt.Errorf("%w: they are those of node %s", ErrNoProfiles, kept.Of)
	case len(kept.Guests) > mostGuests:
		return nil, fmt.Errorf("%w: it has %d guests, more than %d", ErrNoProfiles, len(kept.Guests), mostGuests)
	}
	k := New()
	k.hour = kept.Hour
	if k.node, err = kept.Node.subject(); err != nil {
		return nil, err
	}
	for id, one := range kept.Guests {
		if k.guests[id], err = one.subject(); err != nil {
			return nil, err
		}
	}
	return k, nil
}

func (k *keptSubject) subject() (*subject, error) {
	s := &subject{last: k.Last}
	if len(k.Weeks) != week.Hours || len(k.Codes) != int(figures) {
		return nil, fmt.Errorf("%w: a week has %d hours of %d figures", ErrNoProfiles, len(k.Weeks), len(k.Codes))
	}
	copy(s.weeks[:], k.Weeks)
	for f, codes := range k.Codes {
		if len(codes) != week.Hours {
			return nil, fmt.Errorf("%w: a week has figures of %d hours", ErrNoProfiles, len(codes))
		}
		for at, code := range codes {
			if code > bins {
				return nil, fmt.Errorf("%w: there is no figure %d", ErrNoProfiles, code)
			}
			s.codes[at][f] = code
		}
	}
	if k.Running == nil {
		return s, nil
	}
	if len(k.Running.Minutes) != int(figures) || len(k.Running.Bins) != int(figures) {
		return nil, fmt.Errorf("%w: the hour that ran is not whole", ErrNoProfiles)
	}
	s.running = &hour{}
	copy(s.running.minutes[:], k.Running.Minutes)
	for f, counts := range k.Running.Bins {
		for bin, count := range counts {
			if bin < 0 || bin >= bins {
				return nil, fmt.Errorf("%w: there is no bin %d", ErrNoProfiles, bin)
			}
			s.running.bins[f][bin] = count
		}
	}
	return s, nil
}
