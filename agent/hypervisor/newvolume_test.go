package hypervisor

import (
	"strings"
	"testing"
)

func TestVolumeXML(t *testing.T) {
	text, err := NewVolume{
		Name: "disk", Format: FormatQCOW2, CapacityBytes: 4096, BackingFormat: FormatRaw,
	}.XML(&Volume{Path: "/images/a&b", CapacityBytes: 4096})
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		`<capacity unit="bytes">4096</capacity>`, `<allocation unit="bytes">0</allocation>`, "<compat>1.1</compat>",
		`<path>/images/a&amp;b</path>`, `<format type="raw"></format>`, `<format type="qcow2"></format>`,
	} {
		if !strings.Contains(text, part) {
			t.Errorf("%s is missing in\n%s", part, text)
		}
	}
	if strings.Contains(text, "lazy_refcounts") {
		t.Errorf("features in\n%s", text)
	}
}
