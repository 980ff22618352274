package hypervisor

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func documentOf(disk string) string {
	return `<domain type='kvm'><name>web</name><uuid>11111111-2222-4333-8444-555555555555</uuid><memory>65536</memory><vcpu>1</vcpu>` +
		`<os><type>hvm</type></os><devices><disk type='file' device='disk'>` +
		`<source file='/srv/` + disk + `'/><target dev='vda' bus='virtio'/></disk>` +
		`<hostdev mode='subsystem' type='usb'><source><address bus='1' device='2'/></source></hostdev></devices></domain>`
}

// A document that is known says what it said, another one what it says itself, and what somebody adds to one answer is in no other.
func TestDocumentsAreReadOnce(t *testing.T) {
	var known Documents
	for i := range 3 * keptDocuments / 2 {
		disk := fmt.Sprint(i)
		if i%3 == 2 {
			disk = "0"
		}
		want, err := AttachedIn(documentOf(disk))
		if err != nil || len(want.Bindings) != 1 || len(want.Written) != 1 || len(want.Devices) != 1 {
			t.Fatalf("%+v, %v", want, err)
		}
		got, err := known.AttachedIn(documentOf(disk))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%s: %+v, %v, want %+v", disk, got, err, want)
		}
		_ = append(got.Bindings, want.Bindings[0])
		_ = append(got.Devices, want.Devices[0])
	}
	if n := len(known.read) + len(known.old); n > keptDocuments {
		t.Errorf("%d are kept", n)
	}
	if _, err := known.AttachedIn("<domain"); err == nil {
		t.Error("half a document was read")
	}
	if _, err := known.AttachedIn(strings.Replace(documentOf("0"), "<vcpu>1", "<vcpu>2", 1)); err != nil {
		t.Error(err)
	}
}

func BenchmarkDocuments(b *testing.B) {
	text := documentOf("0")
	for name, read := range map[string]func(string) (Attached, error){"read": AttachedIn, "known": new(Documents).AttachedIn} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := read(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
