package domxml

import "testing"

func TestADocumentIsShownWithoutPasswords(t *testing.T) {
	const with = `<graphics type='vnc' passwd='x' port='-1'/><graphics type="spice" passwd = "a'b"/><name>passwd</name>`
	const without = `<graphics type='vnc' port='-1'/><graphics type="spice"/><name>passwd</name>`
	if got := WithoutSecrets(with); got != without {
		t.Error(got)
	}
}
