package disksnapshot

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"berth/agent/hypervisor"
)

func TestFileOfAnImage(t *testing.T) {
	for name, want := range map[string]string{
		"/srv/a.qcow2": "/srv/a.qcow2",
		`json:{"backing": {"driver": "raw", "file": {"driver": "file", "filename": "/srv/base"}}, "driver": "qcow2", ` +
			`"file": {"driver": "file", "filename": "/srv/a.qcow2"}}`: "/srv/a.qcow2",
		`json:{"driver": "qcow2", "file": {"driver": "raw", "file": {"driver": "file", "filename": "/srv/b"}}}`: "/srv/b",
		`json:{"driver": "qcow2", "file": "libvirt-1-storage"}`:                                                 "",
		"json:nothing": "",
	} {
		if got := fileOf(name); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
}

// qemu answers as QEMU does for two files, of which the first has a snapshot already.
type qemu struct{ asked []string }

func (q *qemu) monitor(command string) (string, error) {
	q.asked = append(q.asked, command)
	if strings.Contains(command, "query-block") {
		return `{"return": [{"device": ""}, {"inserted": {"node-name": "libvirt-2-format", "drv": "qcow2", "file": "/srv/a",
			"image": {"snapshots": [{"id": "1", "name": "old"}]}}}, {"inserted": {"node-name": "libvirt-1-format", "drv": "qcow2", "file": "/srv/b",
			"image": {}}}, {"inserted": {"node-name": "libvirt-3-format", "drv": "raw", "file": "/srv/raw", "image": {}}}]}`, nil
	}
	if strings.Contains(command, "broken") {
		return `{"error": {"class": "GenericError", "desc": "no room"}}`, nil
	}
	return `{"return": {}}`, nil
}

func TestWhatQEMUIsAsked(t *testing.T) {
	const transaction = `{"execute":"transaction","arguments":{"actions":[` +
		`{"type":"blockdev-snapshot-internal-sync","data":{"device":"libvirt-2-format","name":"%[1]s"}},` +
		`{"type":"blockdev-snapshot-internal-sync","data":{"device":"libvirt-1-format","name":"%[1]s"}}]}}`
	const removal = `{"execute":"blockdev-snapshot-delete-internal-sync","arguments":{"device":"libvirt-2-format","name":"old"}}`
	both := []string{"/srv/a", "/srv/b"}
	for name, c := range map[string]struct {
		work  hypervisor.SnapshotWork
		tag   string
		files []string
		asked []string // but for the first question
		cause error
	}{
		"all of them at one moment":     {hypervisor.SnapshotTake, "new", both, []string{fmt.Sprintf(transaction, "new")}, nil},
		"what is there stays":           {hypervisor.SnapshotTake, "old", both[:1], nil, nil},
		"half of one is taken anew":     {hypervisor.SnapshotTake, "old", both, []string{removal, fmt.Sprintf(transaction, "old")}, nil},
		"removed where it is":           {hypervisor.SnapshotForget, "old", both, []string{removal}, nil},
		"nothing to remove":             {hypervisor.SnapshotForget, "new", both, nil, nil},
		"to be restored":                {hypervisor.SnapshotRestore, "old", both[:1], nil, nil},
		"not all have it":               {hypervisor.SnapshotRestore, "old", both, nil, hypervisor.ErrNoVolume},
		"a file that is not open":       {hypervisor.SnapshotTake, "new", []string{"/srv/c"}, nil, hypervisor.ErrNoVolume},
		"a file that keeps no snapshot": {hypervisor.SnapshotTake, "new", []string{"/srv/raw"}, nil, hypervisor.ErrUnsupported},
	} {
		var q qemu
		err := Monitor(q.monitor).Work(c.work, hypervisor.DiskSnapshot{Tag: c.tag, Files: c.files})
		if (c.cause == nil) != (err == nil) || c.cause != nil && !errors.Is(err, c.cause) || !slices.Equal(q.asked[1:], c.asked) {
			t.Errorf("%s: asked %q, %v", name, q.asked[1:], err)
		}
	}
	var q qemu
	err := Monitor(q.monitor).Work(hypervisor.SnapshotTake, hypervisor.DiskSnapshot{Tag: "broken", Files: both})
	if err == nil || !strings.Contains(err.Error(), "no room") {
		t.Errorf("what QEMU refuses is %v", err)
	}
}
