package jobs

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"berth/agent/hypervisor"
	"berth/agent/seed"
	"berth/agent/volumes"
	"berth/shared/domxml"
	berthv1 "berth/shared/gen/berth/v1"
)

// provide makes the volumes of a start. If it does not, it says how the start ends.
func (j *Jobs) provide(command *berthv1.Command, takenUp bool) (made bool, ended done) {
	order := command.GetStart()
	if len(order.GetVolumes()) == 0 {
		return true, done{}
	}
	if takenUp {
		// What an earlier life asked for may still come, and its volumes must not be made anew under it.
		seen, sure := j.awaitAbsence(command)
		switch {
		case seen.holds(command.GetEpoch()):
			return false, j.started(command, seen)
		case !sure:
			return false, j.startUnknown(command, errors.New("a start of the VM may still take effect"))
		}
	}
	err := volumes.Make(j.ctx, j.Hypervisor, order.GetVolumes(), seedOf(command, order.GetSpec()))
	if err == nil {
		return true, done{}
	}
	if takenUp {
		err = volumes.Both(err, volumes.Remove(j.ctx, j.Hypervisor, order.GetVolumes()))
	}
	return false, j.unlessLeft(command, notStarted(command, err, absent(command)), err)
}

// cleared removes the volumes of a start that failed, before the answer that it did: whoever hears it counts on that.
func (j *Jobs) cleared(command *berthv1.Command, d done) done {
	if d.result.GetOutcome() != berthv1.CommandOutcome_COMMAND_OUTCOME_FAILED || len(command.GetStart().GetVolumes()) == 0 {
		return d
	}
	err := volumes.Remove(j.ctx, j.Hypervisor, command.GetStart().GetVolumes())
	return j.unlessLeft(command, d, volumes.Both(errors.New(d.result.GetError()), err))
}

// unlessLeft turns a failed start into one in doubt when some of its volumes may be left.
func (j *Jobs) unlessLeft(command *berthv1.Command, d done, err error) done {
	if !errors.Is(err, volumes.ErrLeft) {
		return d
	}
	unknown := j.startUnknown(command, err)
	unknown.obeyFrom, unknown.result.ErrorCode = d.obeyFrom, d.result.GetErrorCode()
	return unknown
}

// startUnknown answers that nobody knows what is here, and lets a later look at the VM wait until it is sure.
func (j *Jobs) startUnknown(command *berthv1.Command, err error) done {
	j.absences.doubt(command.GetVmId())
	seen := absent(command)
	seen.domain.State = ""
	return done{result: doubt(command, err, seen.message())}
}

// awaitAbsence waits until the VM is absent for sure, or here, or time is up.
func (j *Jobs) awaitAbsence(command *berthv1.Command) (seen sight, sure bool) {
	seen = j.await(command, patience, func(s sight) bool {
		sure = j.absences.positive(command.GetVmId(), s, time.Now())
		return sure || s.known() && !s.absent()
	})
	return seen, sure
}

// seedOf is what is in the VM's seed image.
func seedOf(command *berthv1.Command, spec *berthv1.VMSpec) []byte {
	return seed.Image(command.GetVmId(), command.GetVmName(), spec.GetUserData())
}

// disks are those of a start, the seed image last. Each volume is looked up, also one that was made long ago: only then
// does libvirt see what another node did in a shared pool, and what is gone is called by its name.
func (j *Jobs) disks(order *berthv1.StartCommand) ([]domxml.Disk, error) {
	var disks []domxml.Disk
	for _, disk := range order.GetSpec().GetDisks() {
		if disk.GetVolume() != "" {
			if _, err := j.Hypervisor.LookupVolume(j.ctx, disk.GetPool(), disk.GetVolume()); err != nil {
				return nil, err
			}
		}
		disks = append(disks, domxml.Disk{
			Path: disk.GetPath(), Pool: disk.GetPool(), Volume: disk.GetVolume(), Format: disk.GetFormat(), Bus: disk.GetBus(),
			ReadOnly: disk.GetReadOnly(), Serial: diskOf(disk.GetVolume()),
		})
	}
	for _, volume := range order.GetVolumes() {
		if volume.GetSeed() {
			// On virtio, because kernels of cloud images have no driver for what a CD-ROM is plugged into.
			disks = append(disks, domxml.Disk{Pool: volume.GetPool(), Volume: volume.GetName(), Format: hypervisor.FormatRaw, ReadOnly: true})
		}
	}
	return disks, nil
}

// diskOf is the ID of the disk that a volume was made for; empty for any other file. The coordinator names its volumes by
// it, so a guest knows the disk by the same word at every start and on every node.
func diskOf(volume string) string {
	id, ours := strings.CutPrefix(strings.TrimSuffix(volume, path.Ext(volume)), "berth-")
	if !ours || len(id) > domxml.MaxSerial {
		return ""
	}
	return id
}

// moveDisks completes the options of a migration of a domain that has volumes: its document names those of the target, and
// the disks that go along are said.
//
// A volume that does not go along is one that both nodes see: the coordinator plans no other migration. The target's libvirt
// may not have read its pool since the volume was made, so the document names the file, which is the same on both.
func (j *Jobs) moveDisks(order *berthv1.MigrateCommand, options *hypervisor.MigrateOptions) error {
	disks, err := domxml.Disks(options.DomainXML)
	if err != nil {
		return err
	}
	sources := map[string]domxml.Source{}
	left, seen := 0, 0 // disks that stay, and those of them that both nodes see
	for _, disk := range disks {
		name := disk.Volume
		if name == "" {
			name = path.Base(disk.Path)
		}
		to := counterpart(order, name)
		switch {
		case to != nil && !disk.ReadOnly && disk.Format != to.GetFormat():
			return fmt.Errorf("%w: %s has format %q, and %q is what waits for it", hypervisor.ErrUnsupported, volumes.Name(to), disk.Format, to.GetFormat())
		case to != nil:
			if sources[disk.Target], err = j.sourceOf(to.GetPool(), to.GetName(), to.GetShared()); err != nil {
				return err
			}
			if !disk.ReadOnly {
				options.CopyDisks = append(options.CopyDisks, disk.Target)
			}
		case disk.Volume != "":
			if sources[disk.Target], err = j.sourceOf(disk.Pool, disk.Volume, true); err != nil {
				return err
			}
		}
		if to == nil && !disk.ReadOnly {
			left++
			if disk.Volume != "" || diskOf(name) != "" {
				seen++
			}
		}
	}
	if goAlong := writable(order.GetFrom()); len(options.CopyDisks) != goAlong {
		return fmt.Errorf("%w: %d disks are to be copied, and the domain has %d of them", hypervisor.ErrUnsupported, goAlong, len(options.CopyDisks))
	}
	options.SharedDisks = left > 0 && left == seen
	options.DomainXML, err = domxml.MoveDisks(options.DomainXML, sources)
	return err
}

// counterpart is the volume on the target that takes the content of one here; nil if that does not go along.
func counterpart(order *berthv1.MigrateCommand, name string) *berthv1.Volume {
	for i, from := range order.GetFrom() {
		if from.GetName() == name && i < len(order.GetTo()) {
			return order.GetTo()[i]
		}
	}
	return nil
}

// writable counts the volumes that a guest writes.
func writable(all []*berthv1.Volume) int {
	count := 0
	for _, volume := range all {
		if !volume.GetSeed() {
			count++
		}
	}
	return count
}

// sourceOf is how a document names a volume: as a file if that is at the same place on all nodes.
func (j *Jobs) sourceOf(pool, name string, shared bool) (domxml.Source, error) {
	if !shared {
		return domxml.Source{Pool: pool, Volume: name}, nil
	}
	found, err := j.Hypervisor.LookupVolume(j.ctx, pool, name)
	return domxml.Source{Path: found.Path}, err
}

// prepare makes the volumes that a migration copies into.
func (j *Jobs) prepare(command *berthv1.Command, takenUp bool) done {
	order := command.GetPrepare()
	seen := j.firstLook(command, takenUp, haste)
	switch {
	case !seen.known() && takenUp:
		return done{result: doubt(command, seen.err, seen.message()), again: true}
	case !seen.known():
		return done{result: refused(command, seen.err, seen.message())}
	case !seen.absent():
		err := fmt.Errorf("%w: %s is %s here under epoch %d", hypervisor.ErrExists, seen.domain.Name, seen.domain.State, seen.domain.Epoch)
		return done{result: failure(command, err, seen.message())}
	}
	err := volumes.Make(j.ctx, j.Hypervisor, order.GetVolumes(), seedOf(command, order.GetSpec()))
	if err != nil && takenUp {
		err = volumes.Both(err, volumes.Remove(j.ctx, j.Hypervisor, order.GetVolumes()))
	}
	switch {
	case err == nil:
		return done{result: success(command, seen.message())}
	case errors.Is(err, volumes.ErrLeft):
		return done{result: doubt(command, err, seen.message()), again: true}
	default:
		return done{result: failure(command, err, seen.message()), obeyFrom: command.GetEpoch() + 1}
	}
}

// clear removes volumes that nobody counts any more. It never touches a domain, nor what one has: its failures are not kept,
// and the same order is sent until they are gone.
func (j *Jobs) clear(command *berthv1.Command) done {
	for deadline := time.Now().Add(patience); ; {
		seen, sure := j.awaitAbsence(command)
		err := seen.err
		switch {
		case seen.known() && !seen.gone():
			err = fmt.Errorf("%w: the VM is %s here", hypervisor.ErrInUse, seen.domain.State)
		case sure || seen.gone() && !seen.absent():
			err = volumes.Remove(j.ctx, j.Hypervisor, command.GetClear().GetVolumes())
		case err == nil:
			err = errors.New("a start of the VM may still take effect")
		}
		switch {
		case err == nil:
			return done{result: success(command, seen.message()), obeyFrom: command.GetEpoch() + 1}
		case errors.Is(err, hypervisor.ErrInUse):
			return done{result: failure(command, err, seen.message()), again: true}
		case !time.Now().Before(deadline) || j.sleep(retryEvery) != nil:
			return done{result: doubt(command, err, seen.message()), again: true}
		}
	}
}
