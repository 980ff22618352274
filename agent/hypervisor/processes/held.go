package processes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"berth/agent/hypervisor"
)

// lockedImage is what QEMU says of a disk that another process has locked.
var lockedImage = regexp.MustCompile(`(?s)Failed to get .*"[a-z ]+" lock.*Is another process using the image \[(.+)\]\?`)

// held is the error that the image of a disk is open in another QEMU.
type held struct{ image string }

func (h held) Error() string { return fmt.Sprintf("disk %s is %s", h.image, hypervisor.ErrHeld) }
func (h held) Unwrap() error { return hypervisor.ErrHeld }

// Refused is the error that words of QEMU tell of: another process has locked the image of a disk, or no more than these words.
func Refused(words string) error {
	if image := lockedImage.FindStringSubmatch(words); image != nil {
		return held{image[1]}
	}
	return hypervisor.Said(hypervisor.ErrFailed, words)
}

// WithHolder adds to an error that a disk is held which process of this host has it, as far as command lines tell.
func (s Seen) WithHolder(ctx context.Context, err error) error {
	disk, is := errors.AsType[held](err)
	if !is {
		return err
	}
	process, found, failure := s.having(ctx, disk.image)
	switch {
	case failure != nil:
		return fmt.Errorf("%w; which one is not known: %w", err, failure)
	case !found:
		const next = "no command line of a process on this host names it: look at other hosts, and at disks that were attached later"
		return fmt.Errorf("%w; %s", err, next)
	}
	return fmt.Errorf("%w: process %d on this host, guest %q", err, process.PID, process.Name)
}

// having is the guest's process that was begun with a file as a disk. A disk that was attached later is on no command line.
func (s Seen) having(ctx context.Context, file string) (is hypervisor.Process, found bool, err error) {
	guests, err := s.Processes(ctx)
	if err != nil {
		return is, false, err
	}
	for _, guest := range guests {
		line, err := os.ReadFile(filepath.Join(s.Proc, strconv.Itoa(guest.PID), "cmdline"))
		if err == nil && names(string(line), file) {
			return guest, true, nil
		}
	}
	return is, false, ctx.Err()
}

// names tells whether a command line has a path, and not only as the beginning or the end of another one.
func names(line, path string) bool {
	const around = "\x00,\"= "
	for at := strings.Index(line, path); at >= 0; {
		end := at + len(path)
		if (at == 0 || strings.ContainsRune(around, rune(line[at-1]))) && (end == len(line) || strings.ContainsRune(around, rune(line[end]))) {
			return true
		}
		next := strings.Index(line[end:], path)
		if next < 0 {
			return false
		}
		at = end + next
	}
	return false
}
