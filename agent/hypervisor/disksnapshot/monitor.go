// Package disksnapshot takes and removes snapshots inside the qcow2 files of a domain, by what it says to QEMU, and describes to libvirt
// what it has no call for. It asks nobody itself.
package disksnapshot

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"berth/agent/hypervisor"
)

// Monitor gives QEMU a command in its own language, and returns its answer.
type Monitor func(command string) (answer string, err error)

// Work does it with the QEMU that has the files open. A snapshot that is to be restored is only looked for: QEMU itself restores none that
// has no memory.
func (m Monitor) Work(work hypervisor.SnapshotWork, of hypervisor.DiskSnapshot) error {
	images, err := m.images(of.Files)
	switch {
	case err != nil:
		return err
	case work == hypervisor.SnapshotTake:
		return m.take(of.Tag, images)
	case work == hypervisor.SnapshotForget:
		return m.forget(of.Tag, images)
	}
	for _, one := range images {
		if !slices.Contains(one.tags, of.Tag) {
			return fmt.Errorf("%w: %s has no snapshot %s", hypervisor.ErrNoVolume, one.file, of.Tag)
		}
	}
	return nil
}

// image is a qcow2 file that a QEMU process has open as a disk.
type image struct {
	node string // QEMU's name of it
	file string
	tags []string // of the snapshots that it has
}

// do gives QEMU a command, and reads what it returns; nil: nothing of interest.
func (m Monitor) do(command string, arguments, into any) error {
	asked, err := json.Marshal(struct {
		Execute   string `json:"execute"`
		Arguments any    `json:"arguments,omitempty"`
	}{command, arguments})
	if err != nil {
		return err
	}
	text, err := m(string(asked))
	if err != nil {
		return err
	}
	var reply struct {
		Return json.RawMessage `json:"return"`
		Error  *struct {
			Desc string `json:"desc"`
		} `json:"error"`
	}
	if err := json.Unmarshal([]byte(text), &reply); err != nil {
		return fmt.Errorf("QEMU's answer to %s: %w", command, err)
	}
	if reply.Error != nil {
		return fmt.Errorf("QEMU did not do %s: %s", command, reply.Error.Desc)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(reply.Return, into)
}

// images are the images behind files that a domain has, in the order of the files.
func (m Monitor) images(files []string) ([]image, error) {
	var blocks []struct {
		Inserted *struct {
			Node   string `json:"node-name"`
			File   string `json:"file"`
			Driver string `json:"drv"`
			Image  struct {
				Snapshots []struct {
					Name string `json:"name"`
				} `json:"snapshots"`
			} `json:"image"`
		} `json:"inserted"`
	}
	if err := m.do("query-block", nil, &blocks); err != nil {
		return nil, err
	}
	images := make([]image, 0, len(files))
	for _, file := range files {
		found := false
		for _, one := range blocks {
			if one.Inserted == nil || fileOf(one.Inserted.File) != file {
				continue
			}
			if one.Inserted.Driver != hypervisor.FormatQCOW2 {
				return nil, fmt.Errorf("%w: QEMU has %s open as %s, and only qcow2 files keep snapshots", hypervisor.ErrUnsupported, file,
					one.Inserted.Driver)
			}
			found = true
			made := image{node: one.Inserted.Node, file: file}
			for _, snapshot := range one.Inserted.Image.Snapshots {
				made.tags = append(made.tags, snapshot.Name)
			}
			images = append(images, made)
			break
		}
		if !found {
			return nil, fmt.Errorf("%w: QEMU does not have %s open", hypervisor.ErrNoVolume, file)
		}
	}
	return images, nil
}

// fileOf is the path of a file by QEMU's name of an image: the path, or, of one that is not opened as it says itself, all that it was
// opened with.
func fileOf(name string) string {
	text, described := strings.CutPrefix(name, "json:")
	if !described {
		return name
	}
	type opened struct {
		Filename string          `json:"filename"`
		File     json.RawMessage `json:"file"`
	}
	for left := []byte(text); len(left) > 0; {
		var one opened
		if json.Unmarshal(left, &one) != nil {
			return ""
		}
		if one.Filename != "" {
			return one.Filename
		}
		left = one.File
	}
	return ""
}

type node struct {
	Device string `json:"device"`
	Name   string `json:"name"`
}

type step struct {
	Type string `json:"type"`
	Data node   `json:"data"`
}

// take has QEMU take a snapshot of all images at one moment: of all of them or of none. What an interrupted one has left is no snapshot.
func (m Monitor) take(tag string, images []image) error {
	have := slices.DeleteFunc(slices.Clone(images), func(i image) bool { return !slices.Contains(i.tags, tag) })
	if len(have) == len(images) {
		return nil
	}
	if err := m.forget(tag, have); err != nil {
		return err
	}
	steps := make([]step, 0, len(images))
	for _, one := range images {
		steps = append(steps, step{"blockdev-snapshot-internal-sync", node{one.node, tag}})
	}
	return m.do("transaction", map[string]any{"actions": steps}, nil)
}

// forget has QEMU remove a snapshot from the images that have it.
func (m Monitor) forget(tag string, images []image) error {
	for _, one := range images {
		if !slices.Contains(one.tags, tag) {
			continue
		}
		if err := m.do("blockdev-snapshot-delete-internal-sync", node{one.node, tag}, nil); err != nil {
			return fmt.Errorf("of %s: %w", one.file, err)
		}
	}
	return nil
}
