package hypervisor

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// overlays are volumes of a folder, each as NAME, NAME of what it stands on, and the second in which it was written. Empty ones end with
// "-".
func overlays(lines ...string) (all []Volume) {
	for _, line := range lines {
		var name, on string
		var at int64
		empty := strings.HasSuffix(line, "-")
		if _, err := fmt.Sscan(strings.TrimSuffix(line, "-"), &name, &on, &at); err != nil {
			panic(err)
		}
		v := Volume{Name: name, Path: "/srv/" + name, Format: FormatQCOW2, Empty: empty, ModifiedAt: time.Unix(at, 0)}
		if on != "." {
			v.BackingPath = "/srv/" + on
		}
		all = append(all, v)
	}
	return all
}

// What is on top of a disk and newer is found: the newest end of a chain, and whatever competes with it.
func TestWhatIsOnTopOfADisk(t *testing.T) {
	for name, c := range map[string]struct {
		volumes []string
		used    string
		want    string // the newest, and its rivals
	}{
		"nothing":                     {[]string{"disk . 5", "other . 9"}, "", ""},
		"a snapshot":                  {[]string{"disk . 5", "snap disk 6"}, "", "snap"},
		"one of the same moment":      {[]string{"disk . 5", "snap disk 5"}, "", ""},
		"one that was written back":   {[]string{"disk . 7", "snap disk 6"}, "", ""},
		"one with nothing in it":      {[]string{"disk . 5", "snap disk 6-"}, "", ""},
		"a chain":                     {[]string{"disk . 5", "snap disk 6", "more snap 8"}, "", "more"},
		"a chain whose top is empty":  {[]string{"disk . 5", "snap disk 6", "more snap 8-"}, "", "snap"},
		"a chain with an empty link":  {[]string{"disk . 5", "snap disk 6-", "more snap 8"}, "", "more"},
		"two that compete":            {[]string{"disk . 5", "snap disk 6", "more disk 8"}, "", "more snap"},
		"a chain, and one beside it":  {[]string{"disk . 5", "snap disk 6", "more snap 8", "third disk 7"}, "", "more third"},
		"another domain's":            {[]string{"disk . 5", "clone disk 6"}, "clone", ""},
		"on another domain's":         {[]string{"disk . 5", "clone disk 6", "snap clone 7"}, "clone", ""},
		"a ring":                      {[]string{"disk other 5", "other more 6", "more other 7"}, "", ""},
		"a ring through the disk":     {[]string{"disk snap 5", "snap disk 6"}, "", "snap"},
		"on top of another disk only": {[]string{"disk . 5", "other . 5", "snap other 6"}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			used := func(file string) bool { return file == "/srv/"+c.used }
			found, is, known := OverlayOf("/srv/disk", overlays(c.volumes...), used)
			got := strings.Join(append([]string{strings.TrimPrefix(found.Top.Path, "/srv/")}, found.Rivals...), " ")
			if got = strings.ReplaceAll(got, "/srv/", ""); got != c.want || is != (c.want != "") || !known {
				t.Errorf("%q, %v, known %v; want %q", got, is, known, c.want)
			}
		})
	}
	if _, is, known := OverlayOf("/srv/disk", overlays("other . 3"), func(string) bool { return false }); is || known {
		t.Error("of a file that no pool has something is known")
	}
}

func TestWhatIsSaidOfAnOverlay(t *testing.T) {
	found, _, _ := OverlayOf("/srv/disk", overlays("disk . 5", "snap disk 6", "more disk 8"), func(string) bool { return false })
	found.Target = "vda"
	const want = "disk vda is /srv/disk, and /srv/more is on top of it and was written later, and so is /srv/snap: " +
		"one of them can be right: somebody took a snapshot while nobody looked"
	if got := found.Text(); got != want {
		t.Error(got)
	}
}

// An overlay is empty until something was written into it. The lengths are those of files that QEMU has made.
func TestAVolumeAsLibvirtTellsIt(t *testing.T) {
	const text = `<volume type='file'><name>web1.snap</name><key>/srv/web1.snap</key><capacity unit='bytes'>67108864</capacity>
<allocation unit='bytes'>200704</allocation><physical unit='bytes'>%d</physical>
<target><path>/srv/web1.snap</path><format type='qcow2'/><timestamps><mtime>1764112345.070000001</mtime></timestamps>%s</target>
<backingStore><path>/srv/web1.qcow2</path><format type='qcow2'/></backingStore></volume>`
	for _, c := range []struct {
		length  int
		cluster string
		empty   bool
	}{
		{196616, "", true},
		{262144, "", true},
		{327680, "", false},
		{1376256, "", false},
		{196616, "<clusterSize unit='B'>4096</clusterSize>", false},
		{3*2<<20 + 8, "<clusterSize unit='B'>2097152</clusterSize>", true},
	} {
		got, err := VolumeIn(fmt.Sprintf(text, c.length, c.cluster))
		if err != nil || got.Empty != c.empty || got.BackingPath != "/srv/web1.qcow2" || got.Format != FormatQCOW2 ||
			!got.ModifiedAt.Equal(time.Unix(1764112345, 70000001)) {
			t.Errorf("%d bytes: %+v, %v", c.length, got, err)
		}
	}
	for _, bad := range []string{"", "x", "1.x"} {
		if at := moment(bad); !at.IsZero() {
			t.Errorf("%q is %s", bad, at)
		}
	}
	if at := moment("17"); !at.Equal(time.Unix(17, 0)) {
		t.Error(at)
	}
}
