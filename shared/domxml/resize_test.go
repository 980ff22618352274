package domxml

import (
	"errors"
	"strings"
	"testing"
)

func TestResize(t *testing.T) {
	const head, tail = "<domain type='kvm'><name>web</name>", "<!-- kept --></domain>"
	for name, c := range map[string]struct {
		text   string
		memory int64
		vcpus  int
		want   string // empty: refused
	}{
		"memory": {
			"<memory unit='GiB' dumpCore='off'>2</memory><currentMemory unit='GiB'>1</currentMemory>", 512 << 20, 0,
			`<memory dumpCore="off" unit='KiB'>524288</memory><currentMemory unit='KiB'>524288</currentMemory>`,
		},
		"memory without a current": {"<memory>1048576</memory>", 1<<30 + 1, 0, "<memory unit='KiB'>1048577</memory>"},
		"fewer vCPUs than the most": {
			"<memory>1024</memory><vcpu placement='static' current='1'>4</vcpu>", 0, 2,
			`<memory>1024</memory><vcpu placement="static" current='2'>4</vcpu>`,
		},
		"as many as the most":         {"<memory>1024</memory><vcpu current='1'>4</vcpu>", 0, 4, "<memory>1024</memory><vcpu>4</vcpu>"},
		"more than the most":          {"<memory>1024</memory><vcpu>2</vcpu>", 0, 3, "<memory>1024</memory><vcpu>3</vcpu>"},
		"one that nobody has written": {"<memory>1024</memory>", 0, 1, "<memory>1024</memory>"},
		"cells":                       {"<memory>1024</memory><cpu><numa><cell id='0' cpus='0' memory='1024'/></numa></cpu>", 1 << 30, 0, ""},
		"slots":                       {"<maxMemory slots='1' unit='KiB'>4096</maxMemory><memory>1024</memory>", 1 << 30, 0, ""},
		"sockets": {
			"<memory>1024</memory><vcpu>2</vcpu><cpu><topology sockets='2' cores='1' threads='1'/></cpu>", 0, 4, "",
		},
		"sockets that stay": {
			"<memory>1024</memory><vcpu>2</vcpu><cpu><topology sockets='2' cores='1' threads='1'/></cpu>", 0, 1,
			"<memory>1024</memory><vcpu current='1'>2</vcpu><cpu><topology sockets='2' cores='1' threads='1'/></cpu>",
		},
	} {
		got, err := Resize(head+c.text+tail, c.memory, c.vcpus)
		if c.want == "" {
			if !errors.Is(err, errParts) {
				t.Errorf("%s: %q, %v", name, got, err)
			}
			continue
		}
		if err != nil || got != head+c.want+tail {
			t.Errorf("%s: %q, %v, want %q", name, strings.TrimPrefix(got, head), err, c.want)
		}
	}
}
