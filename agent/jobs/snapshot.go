package jobs

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"berth/agent/errorcode"
	"berth/agent/hypervisor"
	"berth/shared/domxml"
	berthv1 "berth/shared/gen/berth/v1"
)

const (
	// snapshotLimit is how long a hypervisor may work on a snapshot. Its size does not matter, but that of the file's own tables does.
	snapshotLimit = 2 * time.Minute
	// freezeLimit is how long the file systems of a guest may take to write down what they hold.
	freezeLimit = 30 * time.Second
	// thawEvery is between the first two tries to have a guest write again, and thawEveryAtMost between any two.
	thawEvery       = 2 * time.Second
	thawEveryAtMost = time.Minute
)

// Words of an order for whether the guest's file systems stand still.
const (
	freezeAuto   = "auto"
	freezeAlways = "always"
)

// errOtherFile says that a disk is not what the coordinator takes it for.
var errOtherFile = errors.New("is another file than the record has")

// snapshotJob is a job that works on a snapshot.
type snapshotJob struct{ *job }

// doSnapshot takes a snapshot of the disks of a VM. What is refused has left nothing, and what has failed may have.
func doSnapshot(one *job) done {
	j := snapshotJob{one}
	work, ended := j.snapshotWork(j.command.GetSnapshot())
	if ended != nil {
		return *ended
	}
	stands, err := j.prepare(work)
	if err == nil {
		err = j.snapshot(hypervisor.SnapshotTake, work)
	}
	if stands.maybe {
		if thawed := j.thaw(); thawed != nil {
			j.keepThawing(j.command.GetVmId())
			err = fmt.Errorf("%w: its guest may stand still, and the agent keeps trying to have it write again, as `virsh domfsthaw %s` does: %w",
				hypervisor.ErrAmbiguous, j.command.GetVmName(), thawed)
		}
	}
	switch {
	case err == nil:
		answer := success(j.command, j.look().message())
		answer.Frozen, answer.Note = stands.sure, stands.note
		return done{result: answer}
	case inDoubt(err):
		return done{result: doubt(j.command, err, j.look().message()), again: true, begun: true}
	case untouched(err) && !j.takenUp:
		return done{result: refused(j.command, err, j.look().message())}
	}
	if undone := j.snapshot(hypervisor.SnapshotForget, work); undone != nil {
		return done{result: failure(j.command, fmt.Errorf("%w; it may be left in a file: %w", err, undone), j.look().message())}
	}
	return done{result: refused(j.command, err, j.look().message())}
}

// prepare has the guest stand still, and removes what an earlier life may have taken of one that did not.
func (j snapshotJob) prepare(of hypervisor.DiskSnapshot) (stands frozen, err error) {
	vm, epoch := j.command.GetVmId(), j.command.GetEpoch()
	if j.freezes() {
		left, err := j.journal.frozenIn(vm)
		if err != nil {
			return stands, fmt.Errorf("%w: read it: %w", errorcode.ErrJournal, err)
		}
		if left == epoch { // nobody knows for how long it has stood still
			err = j.thaw()
			stands.maybe = err != nil
		}
		if err != nil && !errors.Is(err, hypervisor.ErrUnsupported) { // else whether anybody listens now is seen when it is frozen
			return stands, err
		}
		if left != epoch && j.frozenByOthers() {
			return stands, fmt.Errorf("%w: %w: somebody has frozen its file systems, and they would be thawed with the snapshot",
				hypervisor.ErrUntouched, hypervisor.ErrInvalidState)
		}
	}
	if j.takenUp {
		if err := j.snapshot(hypervisor.SnapshotForget, of); err != nil {
			return stands, err
		}
	}
	if !j.freezes() {
		return stands, nil
	}
	return j.freeze(stands.maybe)
}

// doForget removes a snapshot.
func doForget(one *job) done {
	j := snapshotJob{one}
	work, ended := j.snapshotWork(j.command.GetForget())
	if ended != nil {
		return *ended
	}
	return j.worked(j.snapshot(hypervisor.SnapshotForget, work))
}

// doRestore has the disks of a VM that is off be as they were. Repeating it is harmless until the VM has run.
func doRestore(one *job) done {
	j := snapshotJob{one}
	work, ended := j.snapshotWork(j.command.GetRestore())
	if ended != nil {
		return *ended
	}
	return j.worked(j.snapshot(hypervisor.SnapshotRestore, work))
}

// worked is the answer to an order that was tried.
func (j snapshotJob) worked(err error) done {
	seen := j.look()
	switch {
	case err == nil:
		return done{result: success(j.command, seen.message())}
	case inDoubt(err):
		return done{result: doubt(j.command, err, seen.message()), again: true, begun: true}
	case untouched(err) && !j.takenUp:
		return done{result: refused(j.command, err, seen.message())}
	}
	return done{result: failure(j.command, err, seen.message())}
}

// untouched tells of an error that it came before anything was changed.
func untouched(err error) bool {
	return slices.ContainsFunc([]error{
		hypervisor.ErrUntouched, hypervisor.ErrNoVolume, hypervisor.ErrInUse, hypervisor.ErrUnsupported, hypervisor.ErrOtherEpoch,
		hypervisor.ErrNotFound,
	}, func(cause error) bool { return errors.Is(err, cause) })
}

func inDoubt(err error) bool {
	return errors.Is(err, hypervisor.ErrAmbiguous) || errors.Is(err, hypervisor.ErrUnavailable)
}

func (j snapshotJob) snapshot(work hypervisor.SnapshotWork, of hypervisor.DiskSnapshot) error {
	ctx, cancel := j.limited(snapshotLimit)
	defer cancel()
	return j.Hypervisor.Snapshot(ctx, work, of)
}

// snapshotWork is what an order is about, or how it ends because it does not fit what is here.
func (j snapshotJob) snapshotWork(order *berthv1.SnapshotCommand) (of hypervisor.DiskSnapshot, ended *done) {
	not := func(seen sight, err error) (hypervisor.DiskSnapshot, *done) {
		d := j.notStood(seen, err)
		d.begun = j.takenUp
		if seen.known() && inDoubt(err) {
			d = done{result: doubt(j.command, err, seen.message()), again: true, begun: j.takenUp}
		} else if seen.known() && j.takenUp {
			d = done{result: failure(j.command, err, seen.message())} // an earlier life may have done some of it
		}
		return of, &d
	}
	seen := j.firstLook(haste)
	err := j.standsOrIsOff(seen, order.GetOff())
	if err != nil {
		return not(seen, err)
	}
	of = hypervisor.DiskSnapshot{Tag: order.GetTag()}
	if !order.GetOff() {
		of.UUID, of.Epoch = j.command.GetVmId(), j.command.GetEpoch()
	}
	for _, file := range order.GetFiles() {
		found, err := j.pathOf(file.GetPath(), file.GetPool(), file.GetVolume())
		if err != nil {
			return not(seen, fmt.Errorf("disk %s: %w", file.GetTarget(), err))
		}
		of.Files = append(of.Files, found)
	}
	if order.GetTag() == "" || len(of.Files) == 0 {
		return not(seen, fmt.Errorf("%w: a snapshot without a name or disks", hypervisor.ErrUnsupported))
	}
	if !order.GetOff() {
		if err := j.sameDisks(order, of.Files); err != nil {
			return not(seen, err)
		}
	}
	return of, nil
}

// standsOrIsOff says why disks cannot be worked on as they are to be.
func (j snapshotJob) standsOrIsOff(seen sight, off bool) error {
	switch {
	case !off:
		if err := j.stands(seen); err != nil {
			return err
		}
		if !seen.in(hypervisor.Running) && !seen.in(hypervisor.Paused) {
			return otherState(seen)
		}
		return nil
	case !seen.known():
		return seen.err
	case !seen.gone():
		return fmt.Errorf("%w: it is %s here, and was to be off", hypervisor.ErrInvalidState, seen.domain.State)
	case seen.domain.JobActive:
		return fmt.Errorf("%w: the hypervisor clears up behind it", hypervisor.ErrBusy)
	case seen.domain.Saved:
		return fmt.Errorf("%w: libvirt keeps its memory, which goes with its disks as they are", hypervisor.ErrInvalidState)
	}
	return nil
}

// pathOf is the path of a file or of a volume.
func (j snapshotJob) pathOf(file, pool, volume string) (string, error) {
	if file != "" {
		return path.Clean(file), nil
	}
	found, err := j.Hypervisor.LookupVolume(j.ctx, pool, volume)
	return found.Path, err
}

// sameDisks refuses to work on a guest that has other disks than the coordinator believes. Removing a snapshot needs only those that have
// it.
func (j snapshotJob) sameDisks(order *berthv1.SnapshotCommand, files []string) error {
	text, err := j.Hypervisor.XML(j.ctx, j.command.GetVmId())
	if err != nil {
		return err
	}
	devices, err := domxml.Devices(text)
	if err != nil {
		return fmt.Errorf("%w: %w", hypervisor.ErrInvalidXML, err)
	}
	seen := 0
	for i := range devices {
		live := &devices[i]
		if live.Kind != domxml.DiskDevice || live.ReadOnly || live.Media {
			continue
		}
		at := slices.IndexFunc(order.GetFiles(), func(f *berthv1.SnapshotFile) bool { return strings.EqualFold(f.GetTarget(), live.Key) })
		if at < 0 {
			if j.command.GetForget() != nil {
				continue
			}
			return fmt.Errorf("%w: disk %s is none of those that the record has", hypervisor.ErrInvalidState, live.Key)
		}
		var here string
		if live.Source != (domxml.Source{}) {
			if here, err = j.pathOf(live.Source.Path, live.Source.Pool, live.Source.Volume); err != nil {
				return fmt.Errorf("disk %s: %w", live.Key, err)
			}
		}
		if here != files[at] {
			return fmt.Errorf("%w: disk %s %w (%s, and not %s)", hypervisor.ErrInvalidState, live.Key, errOtherFile, here, files[at])
		}
		seen++
	}
	if seen < len(files) {
		return fmt.Errorf("%w: it has %d of the %d disks that the record has", hypervisor.ErrInvalidState, seen, len(files))
	}
	return nil
}

// freezes tells whether the guest's file systems may be frozen for the order.
func (j snapshotJob) freezes() bool {
	order := j.command.GetSnapshot()
	return !order.GetOff() && (order.GetFreeze() == freezeAuto || order.GetFreeze() == freezeAlways)
}

// frozenByOthers asks the guest's agent, of a guest that no snapshot has frozen. What it cannot tell is seen when it is to freeze them.
func (j snapshotJob) frozenByOthers() bool {
	ctx, cancel := j.limited(actLimit)
	defer cancel()
	is, err := j.Hypervisor.IsFrozen(ctx, j.command.GetVmId())
	return err == nil && is
}

// frozen is whether the guest's file systems stand still.
type frozen struct {
	sure, maybe bool
	note        string // why not, when that is not an error
}

// freeze has the guest's file systems stand still. That they may is journalled first, until it is known that they do not. With left they
// may stand still already.
func (j snapshotJob) freeze(left bool) (frozen, error) {
	if err := j.journal.markFrozen(j.command, j.now()); err != nil {
		return frozen{maybe: left}, fmt.Errorf("%w: %w: free space on its disk", errorcode.ErrJournal, err)
	}
	ctx, cancel := j.limited(freezeLimit)
	defer cancel()
	err := j.Hypervisor.Freeze(ctx, j.command.GetVmId(), j.command.GetEpoch())
	deaf := errors.Is(err, hypervisor.ErrUnsupported)
	maybe := left || !deaf
	if !maybe {
		j.thawed(j.command.GetVmId())
	}
	switch {
	case err == nil:
		return frozen{sure: true, maybe: true}, nil
	case inDoubt(err):
		return frozen{maybe: true}, err
	case j.command.GetSnapshot().GetFreeze() == freezeAlways:
		return frozen{maybe: maybe}, fmt.Errorf("its file systems could not be frozen: %w", err)
	case deaf:
		return frozen{maybe: maybe, note: "its guest agent does not answer, so it is as after a power cut"}, nil
	}
	return frozen{maybe: true, note: fmt.Sprintf("its file systems could not be frozen, so it is as after a power cut: %s", err)}, nil
}

// thaw has the guest write again.
func (j snapshotJob) thaw() error {
	return j.thawGuest(j.command.GetVmId(), j.command.GetEpoch())
}

// thawGuest has a guest write again. One that is gone does not have to. The caller has the VM's turn.
func (j *Jobs) thawGuest(vm string, epoch uint64) error {
	ctx, cancel := j.limited(freezeLimit)
	defer cancel()
	err := j.Hypervisor.Thaw(ctx, vm, epoch)
	if errors.Is(err, hypervisor.ErrUnsupported) {
		if is, looked := j.Hypervisor.Lookup(ctx, vm); looked == nil && is.State == hypervisor.Shutoff {
			err = nil // only its definition is left
		}
	}
	if err == nil || errors.Is(err, hypervisor.ErrNotFound) || errors.Is(err, hypervisor.ErrOtherEpoch) {
		j.thawed(vm)
		return nil
	}
	return err
}

// thawed notes that a guest does not stand still. If the journal does not take it, a later life thaws once more, which is harmless.
func (j *Jobs) thawed(vm string) {
	if err := j.journal.unmarkFrozen(vm); err != nil {
		j.Logger.Error("that a guest writes again could not be journalled", "vm", vm, "error", err)
	}
}

// thawLeft has guests write again that an earlier life of the agent may have left frozen, whether or not a leader asks again.
func (j *Jobs) thawLeft(vms []string) {
	for _, vm := range vms {
		j.keepThawing(vm)
	}
}

// keepThawing tries to have a guest write again for as long as it is here under the epoch in which it was frozen. The turn of the VM keeps
// it from thawing what a later order has frozen.
func (j *Jobs) keepThawing(vm string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.thawing[vm] {
		return
	}
	j.thawing[vm] = true
	j.background(func() {
		for pause := thawEvery; !j.thawLater(vm) && j.sleep(pause) == nil; pause = min(2*pause, thawEveryAtMost) {
		}
	})
}

// thawLater tries it once, and reports whether nobody has to try again.
func (j *Jobs) thawLater(vm string) (ended bool) {
	giveBack, err := j.turns.take(j.ctx, vm)
	if err != nil {
		return true // the agent stops
	}
	defer giveBack()
	epoch, err := j.journal.frozenIn(vm)
	if err == nil && epoch != 0 {
		err = j.thawGuest(vm, epoch)
	}
	if err != nil {
		j.Logger.Warn("a guest whose file systems may be frozen could not be thawed", "vm", vm, "error", err)
		return false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.thawing, vm) // while this one has the turn, so that whoever freezes it next finds nobody at it
	return true
}

// markFrozen records before a guest is frozen that it may be, under the epoch of the order.
func (j *journal) markFrozen(command *berthv1.Command, at time.Time) error {
	return j.storage.Update(func(tx Tx) error {
		return put(tx.Bucket(bucketFrozen), []byte(command.GetVmId()), lineOf(command, at))
	})
}

// unmarkFrozen records that a guest is not frozen.
func (j *journal) unmarkFrozen(vm string) error {
	return j.storage.Update(func(tx Tx) error { return tx.Bucket(bucketFrozen).Delete([]byte(vm)) })
}

// frozenIn is the epoch under which a guest may be frozen; 0: it is not.
func (j *journal) frozenIn(vm string) (epoch uint64, err error) {
	err = j.storage.View(func(tx Tx) error {
		text := tx.Bucket(bucketFrozen).Get([]byte(vm))
		if text == nil {
			return nil
		}
		var line entry
		err := json.Unmarshal(text, &line)
		epoch = line.Epoch
		return err
	})
	return epoch, err
}

// allFrozen are the VM IDs of guests that may be frozen.
func (j *journal) allFrozen() (vms []string, err error) {
	err = j.storage.View(func(tx Tx) error {
		return tx.Bucket(bucketFrozen).ForEach(func(vm, _ []byte) error {
			vms = append(vms, string(vm))
			return nil
		})
	})
	return vms, err
}
