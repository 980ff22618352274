package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheDoctorLooksForWhatStartsGuestsAtBoot(t *testing.T) {
	const file = "etc/sysconfig/libvirt-guests"
	for name, tc := range map[string]struct {
		enabled bool
		text    string
		verdict verdict
		says    string
	}{
		"not enabled":  {text: "ON_BOOT=start\n", verdict: good, says: "not enabled"},
		"as installed": {enabled: true, text: "#ON_BOOT=ignore\n#ON_SHUTDOWN=shutdown\n", verdict: warning, says: `"suspend"`},
		"no file":      {enabled: true, verdict: warning, says: `at boot "start"`},
		"half":         {enabled: true, text: "ON_BOOT=\"start\"\nON_SHUTDOWN='shutdown'\n", verdict: warning, says: `at boot "start"`},
		"harmless":     {enabled: true, text: "# ours\nON_BOOT=ignore\n  ON_SHUTDOWN=\"shutdown\"\n", verdict: good, says: "starts none"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			put := func(path, text string) {
				path = filepath.Join(root, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if tc.enabled {
				put("etc/systemd/system/multi-user.target.wants/libvirt-guests.service", "")
			}
			if tc.text != "" {
				put(file, tc.text)
			}
			found := examineBoot(root)
			if len(found) != 1 || found[0].verdict != tc.verdict || !strings.Contains(found[0].result, tc.says) {
				t.Errorf("found %+v", found)
			}
			if tc.verdict == warning && !strings.Contains(found[0].next, "ON_BOOT=ignore") {
				t.Errorf("next: %s", found[0].next)
			}
		})
	}
}
