package profile

import "time"

// lately is how many minutes are kept one by one. They are in memory alone: who looks wants to see what is going on.
const lately = 60

// mostInMinute is how many samples of one minute count.
const mostInMinute = 1<<8 - 1

// recent are the last minutes of a subject, each at the place of its number.
type recent [lately]minute

// minute is what was measured in one minute.
type minute struct {
	at     uint32 // minutes of Unix time
	counts [figures]uint8
	sums   [figures]float32
}

// add takes a sample in. A minute at whose place another one was begins anew.
func (r *recent) add(at int64, reading Reading) {
	one := &r[at%lately]
	if one.at != uint32(at) {
		*one = minute{at: uint32(at)}
	}
	for f, value := range reading {
		if _, valid := binOf(Figure(f), value); valid && one.counts[f] < mostInMinute {
			one.counts[f]++
			one.sums[f] += float32(*value)
		}
	}
}

// Minutes are those of the last hour that are over and known, in their order, with averages: of a guest, or of the node without one.
func (k *Keeper) Minutes(guest string, now time.Time) []Hour {
	one := k.node
	if guest != "" {
		one = k.guests[guest]
	}
	if one == nil || one.recent == nil {
		return nil
	}
	var known []Hour
	until := now.Unix() / 60
	for at := max(until-lately, 0); at < until; at++ {
		measured := one.recent[at%lately]
		if measured.at != uint32(at) || measured.counts == [figures]uint8{} {
			continue
		}
		told := Hour{Began: time.Unix(at*60, 0).UTC()}
		for f, count := range measured.counts {
			if count > 0 {
				told.Figures[f] = new(float64(measured.sums[f]) / float64(count))
			}
		}
		known = append(known, told)
	}
	return known
}
