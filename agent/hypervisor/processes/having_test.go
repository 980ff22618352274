package processes

import "testing"

func TestWhetherACommandLineNamesAFile(t *testing.T) {
	const path = "/srv/db.img"
	for line, want := range map[string]bool{
		"qemu\x00-blockdev\x00{\"driver\":\"file\",\"filename\":\"/srv/db.img\",\"node-name\":\"x\"}\x00": true,
		"qemu\x00-drive\x00file=/srv/db.img,format=raw\x00":                                               true,
		"qemu\x00/srv/db.img":                                true,
		"qemu\x00-drive\x00file=/srv/db.img.old\x00":         false,
		"qemu\x00-drive\x00file=/other/srv/db.img\x00":       false,
		"qemu\x00/srv/db.img.old\x00-hda\x00/srv/db.img\x00": true,
		"": false,
	} {
		if got := names(line, path); got != want {
			t.Errorf("%q: %t", line, got)
		}
	}
}
