package consensus

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"berth/coordinator/state"
	"berth/shared/buildinfo"
	"berth/shared/units"
)

const (
	// checkEvery is after how many entries members are made to compare their states by an entry of the log.
	checkEvery = 1000
	// checkAgain is how soon a member that has parted is told again: it may not have the last check yet.
	checkAgain = 10 * time.Second
	// reportLife is how long a report counts. Members report every ReportEvery.
	reportLife = 5 * ReportEvery
)

// ReportEvery is how often a member reports to the leader.
const ReportEvery = 2 * time.Second

// LargeLog is the size of the log's file from which on somebody should compact it: bbolt never gives space back.
const LargeLog = 1 * units.GiB

// Report is what a member tells the leader about itself.
type Report struct {
	Version      string // of the release that it runs
	FeatureLevel uint32 // highest that it can apply
	Index        uint64 // of the last command in its state
	Hash         string // of its state there
	LogSize      units.Bytes
	At           time.Time     // when it reports, by its clock; zero: it does not tell
	Write        time.Duration // that 99 of 100 of its writes to the log took at most, in the last minute; 0: too few to tell
	Asking       int           // agents that have asked it for the leader again and again; of the leader: 0
	Hearing      int           // agents that have a session with it
	AgentsMost   int           // agents that may be connected to it; 0: it does not tell
	MetricsPort  int           // at which other machines read its figures; 0: none does
	Backup       Backup
	History      string // why it keeps no history now; empty: it does
}

// Backup is how a member's scheduled backups go.
type Backup struct {
	Every   time.Duration // 0: it makes none
	At      time.Time     // of the last one that was verified; zero: none yet
	Problem string        // why the last try failed; empty: it did not
}

// health is what members tell about themselves, and what follows from it.
type health struct {
	*self
	reports heard[Report]
}

// Report is this member's own, its backups left out.
func (c *health) Report() Report {
	snapshot := c.store.Snapshot()
	report := Report{
		Version: buildinfo.Version(), FeatureLevel: state.FeatureLevel, Index: snapshot.Index(), Hash: snapshot.Hash(),
		At: c.now(), Write: c.logs.pace.p99(time.Now()),
	}
	if file, err := os.Stat(filepath.Join(c.cfg.DataDir, storeFile)); err == nil {
		report.LogSize = units.Bytes(file.Size())
	}
	return report
}

// Heard takes a member's report. Only the leader has a use for it.
func (c *health) Heard(member string, report Report) {
	c.reports.put(raft.ServerID(member), report)
	c.lookAtClocks()
}

// reportOf is the last report of a member, this one's own included, if it still counts.
func (c *health) reportOf(id raft.ServerID) (Report, bool) {
	if string(id) == c.cfg.MemberID {
		own := c.Report()
		if told, known := c.reports.of(id); known {
			own.Backup, own.Hearing = told.what.Backup, told.what.Hearing
		}
		return own, true
	}
	last, known := c.reports.of(id)
	return last.what, known && time.Since(last.at) < reportLife
}

// sameness is how a member's state compares with this one's.
type sameness int

const (
	notCompared sameness = iota
	same
	parted
)

// compare looks up what this member's hash was at the index of another one's report.
func (c *health) compare(report Report) sameness {
	hash, known := c.store.HashAt(report.Index)
	switch {
	case report.Hash == "" || !known:
		return notCompared
	case hash == report.Hash:
		return same
	default:
		return parted
	}
}

// verdict is what the leader concludes from all reports.
type verdict struct {
	agreed    uint64   // index at which a majority of the voters, this one included, has this one's state; 0: no majority
	parted    []string // members that have another state
	outvoted  bool     // a majority of the voters has another state than this one
	undecided bool     // states have parted, and no majority tells which is right
}

func (c *health) judge() verdict {
	var v verdict
	var agree []uint64
	voters, differ := 0, 0
	for _, server := range c.servers() {
		report, known := c.reportOf(server.ID)
		is := notCompared
		if known {
			is = c.compare(report)
		}
		if is == parted {
			v.parted = append(v.parted, string(server.ID))
		}
		if server.Suffrage != raft.Voter {
			continue
		}
		voters++
		switch is {
		case same:
			agree = append(agree, report.Index)
		case parted:
			differ++
		}
	}
	majority := voters/2 + 1
	if len(agree) >= majority {
		// Hashes that are equal at one index were equal at all before, so this many agree up to the lowest of the best.
		slices.Sort(agree)
		v.agreed = agree[len(agree)-majority]
	}
	v.outvoted = differ >= majority
	v.undecided = len(v.parted) > 0 && v.agreed == 0 && !v.outvoted
	return v
}

// checks remembers what was compared in one term.
type checks struct {
	begun bool
	index uint64    // that the last check was of, or where the term began
	at    time.Time // when it was proposed; zero: none was yet
}

// compareStates makes the members compare, and ends those that have parted from most others. No check is proposed that a
// majority has not confirmed by its reports: a leader that is the odd one would end all others.
func (c care) compareStates(ctx context.Context, term uint64, last *checks) error {
	snapshot := c.store.Snapshot()
	if !last.begun {
		*last = checks{begun: true, index: snapshot.Index()}
	}
	v := c.judge()
	if v.outvoted {
		c.fatal(fmt.Errorf("this coordinator led, and most others have another state than it at the same entry of the Raft log (%v): "+
			"remove it with 'berth coordinator delete' on another one, empty its data directory and let it join again, and "+
			"report this as a fault of Berth", v.parted))
		return nil
	}
	due := v.agreed >= last.index+checkEvery || len(v.parted) > 0 && time.Since(last.at) > checkAgain
	if v.agreed == 0 || !due || snapshot.FeatureLevel() < 2 {
		return nil
	}
	hash, known := c.store.HashAt(v.agreed)
	if !known {
		return nil
	}
	last.at = time.Now()
	command := state.Command{
		Key: fmt.Sprintf("check/%d/%d/%d", term, v.agreed, last.at.UnixNano()), Kind: "compare states", Caller: c.caller(), At: last.at.UTC(),
		Level: 2, Check: &state.Check{Index: v.agreed, Hash: hash},
	}
	if _, err := c.Propose(ctx, command); err != nil {
		return fmt.Errorf("have the members compare their states: %w", err)
	}
	last.index = v.agreed
	return nil
}

// raiseLevel raises the feature level to what all members can apply, once all have told.
func (c care) raiseLevel(ctx context.Context, term uint64) error {
	snapshot := c.store.Snapshot()
	level := uint32(state.FeatureLevel)
	for _, server := range c.servers() {
		report, known := c.reportOf(server.ID)
		if !known {
			return nil
		}
		level = min(level, report.FeatureLevel)
	}
	if level <= snapshot.FeatureLevel() {
		return nil
	}
	now := time.Now().UTC()
	command := state.RaiseLevel(level)
	command.Key, command.Caller, command.At = fmt.Sprintf("feature-level/%d/%d/%d", level, term, now.UnixNano()), c.caller(), now
	command.Expect = []state.Expectation{{
		Table: state.Meta, ID: state.MetaFeatureLevel, Revision: snapshot.MetaRevision(state.MetaFeatureLevel),
	}}
	if _, err := c.Propose(ctx, command); err != nil {
		return fmt.Errorf("raise the feature level to %d: %w", level, err)
	}
	c.logger.Info("all coordinators have come to a feature level", "level", level)
	return nil
}

// trouble says in words what is wrong with a member; empty when it is healthy: it keeps up, its clock is right and its disk
// is not slow.
func (c *health) trouble(id raft.ServerID) string {
	if string(id) == c.cfg.MemberID {
		return c.ownTrouble()
	}
	if lags := c.lag(id); lags != "" {
		return lags
	}
	told, known := c.reports.of(id)
	if !known {
		return ""
	}
	switch ahead, timed := c.skew(told); {
	case timed && ahead > maxAhead:
		return "has a clock that is ahead of the leader's by " + far(ahead)
	case timed && ahead < -maxAhead:
		return "has a clock that is behind the leader's by " + far(-ahead)
	}
	return slowness(told.what.Write)
}

// lag says in words why a member cannot be relied on to have what the leader has; empty when it was heard lately, is close behind
// and has the leader's state.
func (c *health) lag(id raft.ServerID) string {
	seen, known := c.transport.ends.of(id)
	switch last := c.raft.Load().LastIndex(); {
	case !known:
		return "does not answer"
	case time.Since(seen.at) >= reachable:
		return fmt.Sprintf("does not answer since %s", time.Since(seen.at).Round(time.Second))
	case seen.what+maxBehind < last:
		return fmt.Sprintf("is %d entries behind", last-seen.what)
	}
	if report, told := c.reportOf(id); told && c.compare(report) == parted {
		return "has another state than the leader"
	}
	return ""
}

// ownTrouble is what is wrong with this member while it leads.
func (c *health) ownTrouble() string {
	if ahead := time.Duration(c.ahead.Load()); ahead != 0 {
		return fmt.Sprintf("has a clock that is %s ahead of most others', and changes nothing until it is set right", far(ahead))
	}
	return slowness(c.logs.pace.p99(time.Now()))
}

// slowness says that a disk is slow.
func slowness(write time.Duration) string {
	if write <= slowWrite {
		return ""
	}
	return fmt.Sprintf("has a slow disk: of its writes to the log in the last minute one in a hundred took %s or longer",
		write.Round(time.Millisecond))
}
