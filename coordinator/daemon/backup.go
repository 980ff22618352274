package daemon

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"berth/coordinator/consensus"
	"berth/coordinator/seal"
	"berth/coordinator/state"
	"berth/shared/buildinfo"
	"berth/shared/config"
	"berth/shared/pause"
	"berth/shared/units"
)

// Backups say where, how often and how long backups are kept. Every member makes its own, of its own state: so the machine
// that is left has one, whichever that is, and no leader is needed.
type Backups struct {
	Directory string        `yaml:"directory,omitempty"` // default: backups in the data directory
	Every     time.Duration `yaml:"every,omitempty"`     // default: defaultBackupEvery; negative: none are made
	Keep      int           `yaml:"keep,omitempty"`      // newest files; default: defaultBackupKeep
}

// The defaults and ranges of Backups.
const (
	defaultBackupEvery = 15 * time.Minute
	leastBackupEvery   = time.Minute
	mostBackupEvery    = 24 * time.Hour
	defaultBackupKeep  = 96 // a day
	mostBackupKeep     = 10_000

	backupRetry = time.Minute            // after a try that failed
	backupLook  = 200 * time.Millisecond // for a state that there can be a backup of
	// keepBefore is how many backups of the times before an upgrade are kept in addition to the others.
	keepBefore = 5
)

func (b *Backups) off() bool { return b.Every < 0 }

func (b *Backups) complete(dataDir string) error {
	b.Directory = cmp.Or(b.Directory, filepath.Join(dataDir, "backups"))
	b.Every = cmp.Or(b.Every, defaultBackupEvery)
	b.Keep = cmp.Or(b.Keep, defaultBackupKeep)
	if !b.off() && b.Every < leastBackupEvery || b.Every > mostBackupEvery {
		return fmt.Errorf(
			"%w: key backup.every: %v is out of range: want %v to %v, or less than 0 for none", ErrConfig, b.Every, leastBackupEvery,
			mostBackupEvery,
		)
	}
	if b.Keep < 1 || b.Keep > mostBackupKeep {
		return fmt.Errorf("%w: key backup.keep: %d is out of range: want 1 to %d", ErrConfig, b.Keep, mostBackupKeep)
	}
	return nil
}

// errBackup: what was written does not give back the state that it was made of.
var errBackup = errors.New("the backup does not restore to the state that it was made of")

// backups makes them.
type backups struct {
	Backups
	keys  func() (seal.Keys, error)
	store *state.Store
	now   func() time.Time
	log   hclog.Logger

	mu   sync.Mutex
	last consensus.Backup
}

func newBackups(
	settings Backups, keys func() (seal.Keys, error), store *state.Store, now func() time.Time, log hclog.Logger,
) *backups {
	b := &backups{Backups: settings, keys: keys, store: store, now: now, log: log}
	if settings.off() {
		return b
	}
	b.last.Every = settings.Every
	if files, err := listBackups(settings.Directory); err == nil && len(files) > 0 {
		b.last.At = files[len(files)-1].at
	}
	return b
}

// health is what the leader is told.
func (b *backups) health() consensus.Backup {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last
}

// run makes backups until the context ends.
func (b *backups) run(ctx context.Context) {
	if b.off() {
		return
	}
	for {
		due := b.health().At.Add(b.Every)
		if !pause.For(ctx, max(due.Sub(b.now()), 0)) {
			return
		}
		x := b.store.Snapshot()
		if x.Meta(state.MetaClusterID) == "" { // nothing that could be restored
			if !pause.For(ctx, backupLook) {
				return
			}
			continue
		}
		err := b.take(x)
		if err == nil {
			continue
		}
		b.log.Error("no backup was made", "error", err, "next_try", backupRetry)
		if !pause.For(ctx, backupRetry) {
			return
		}
	}
}

// take makes one backup and remembers how it went.
func (b *backups) take(x *state.Snapshot) error {
	at := b.now().UTC()
	keys, err := b.keys()
	var path string
	if err == nil {
		path, err = writeBackup(b.Directory, x, keys, at, false)
	}
	if err == nil {
		err = thinBackups(b.Directory, b.Keep)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		b.last.Problem = err.Error()
		return err
	}
	b.last.At, b.last.Problem = at, ""
	b.log.Debug("a backup was made and verified", "file", path, "index", x.Index())
	return nil
}

// writeBackup writes a file, and gives it its name when a restore of what is on the disk has come to the same state.
func writeBackup(dir string, x *state.Snapshot, keys seal.Keys, at time.Time, before bool) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make the directory of backups: %w", err)
	}
	name := fmt.Sprintf("%s-%d", at.Format(backupTime), x.Index())
	if before {
		name += "-before"
	}
	path := filepath.Join(dir, name+".snapshot")
	written := path + ".new"
	err := saveBackup(written, x, keys)
	if err == nil {
		err = checkBackup(written, x, keys)
	}
	if err == nil {
		err = os.Rename(written, path)
	}
	if err != nil {
		_ = os.Remove(written) // the first error is the one to tell
		return "", err
	}
	return path, syncDirectory(dir)
}

func saveBackup(path string, x *state.Snapshot, keys seal.Keys) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("write a backup: %w", err)
	}
	if err := errors.Join(consensus.SaveSealed(x, file, keys), file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("write a backup: %w", err)
	}
	return nil
}

// checkBackup restores a file into a scratch state, and compares that in every byte with the one that it was made of.
func checkBackup(path string, x *state.Snapshot, keys seal.Keys) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read a backup: %w", err)
	}
	defer file.Close()
	content, _, err := seal.Open(file, keys, false)
	if err != nil {
		return fmt.Errorf("%w: %w", errBackup, err)
	}
	restored, err := state.Load(content)
	if err != nil {
		return fmt.Errorf("%w: %w", errBackup, err)
	}
	sums := make([][]byte, 2)
	for i, one := range []*state.Snapshot{x, restored.Snapshot()} {
		sum := sha256.New()
		if err := one.Save(sum); err != nil {
			return err
		}
		sums[i] = sum.Sum(nil)
	}
	if restored.Hash() != x.Hash() || !slices.Equal(sums[0], sums[1]) {
		return fmt.Errorf("%w, at index %d", errBackup, x.Index())
	}
	return nil
}

func syncDirectory(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// backupFile is one that was verified.
type backupFile struct {
	path   string
	at     time.Time
	index  uint64
	before bool // an upgrade
	size   units.Bytes
}

const backupTime = "20060102T150405Z"

var backupName = regexp.MustCompile(`^(\d{8}T\d{6}Z)-(\d+)(-before)?\.snapshot$`)

// listBackups are the files in a directory, oldest first; none if it is not there.
func listBackups(dir string) ([]backupFile, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for backups: %w", err)
	}
	var files []backupFile
	for _, entry := range entries {
		parts := backupName.FindStringSubmatch(entry.Name())
		if parts == nil {
			continue
		}
		file := backupFile{path: filepath.Join(dir, entry.Name()), before: parts[3] != ""}
		if file.at, err = time.Parse(backupTime, parts[1]); err != nil {
			continue
		}
		if file.index, err = strconv.ParseUint(parts[2], 10, 64); err != nil {
			continue
		}
		if info, err := entry.Info(); err == nil {
			file.size = units.Bytes(info.Size())
		}
		files = append(files, file)
	}
	slices.SortStableFunc(files, func(a, b backupFile) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.index, b.index))
	})
	return files, nil
}

// thinBackups removes the oldest files, and those of before an upgrade by themselves.
func thinBackups(dir string, keep int) error {
	files, err := listBackups(dir)
	if err != nil {
		return err
	}
	for _, kind := range []struct {
		before bool
		keep   int
	}{{false, keep}, {true, keepBefore}} {
		kept := 0
		for _, file := range slices.Backward(files) {
			if file.before != kind.before {
				continue
			}
			if kept++; kept > kind.keep {
				if err := os.Remove(file.path); err != nil {
					return fmt.Errorf("remove an old backup: %w", err)
				}
			}
		}
	}
	return nil
}

// backupBeforeUpgrade makes a backup of what an earlier release has left, before this one writes anything. The store is
// read as a whole for it, which the other starts need not wait for.
func (d *daemon) backupBeforeUpgrade() error {
	marker := d.home.file("release")
	last, err := os.ReadFile(marker)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read which release ran here last: %w", err)
	}
	if string(last) == buildinfo.Version() {
		return nil
	}
	if !d.config.Backup.off() {
		if err := d.backupOf(cmp.Or(string(last), "an earlier one")); err != nil {
			return err
		}
	}
	return config.WriteFile(marker, []byte(buildinfo.Version()), 0o600)
}

func (d *daemon) backupOf(release string) error {
	found, err := consensus.Inspect(d.home.raft(), d.log.Named("consensus"))
	if errors.Is(err, consensus.ErrNoStore) {
		return nil
	}
	if err != nil {
		return err
	}
	if found.State.Meta(state.MetaClusterID) == "" { // nothing that could be restored
		return nil
	}
	keys, err := d.home.keepSealKeys()
	if err != nil {
		return err
	}
	path, err := writeBackup(d.config.Backup.Directory, found.State, keys, time.Now().UTC(), true)
	if err != nil {
		return fmt.Errorf("before release %s goes on after %s: %w: make room for it, or start once with 'backup: {every: -1s}'",
			buildinfo.Version(), release, err)
	}
	d.log.Info("a backup was made before the upgrade", "from", release, "to", buildinfo.Version(), "file", path)
	return nil
}
