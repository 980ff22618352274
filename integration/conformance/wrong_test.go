package conformance

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A runner that lets everything pass proves nothing. This runs cases that are wrong in one way each, as further folders
// are run, and wants every one of them to fail.
func TestWrongCasesFail(t *testing.T) {
	folder, err := filepath.Abs("testdata/wrong")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in %s: %v", folder, err)
	}
	var wrong []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var suite struct{ Cases []struct{ ID string } }
		if err := json.Unmarshal(text, &suite); err != nil || len(suite.Cases) == 0 {
			t.Fatalf("%s has no cases: %v", file, err)
		}
		for _, one := range suite.Cases {
			wrong = append(wrong, one.ID)
		}
	}
	run := exec.Command(os.Args[0], "-test.run", "^TestConformance$")
	run.Env = append(os.Environ(), foldersVariable+"="+folder)
	out, err := run.CombinedOutput()
	if err == nil {
		t.Error("wrong cases pass")
	}
	for _, id := range wrong {
		if !strings.Contains(string(out), "FAIL: TestConformance/"+id+" (") &&
			!strings.Contains(string(out), `"`+id+`"`) { // a case that cannot be read has no test of its own
			t.Errorf("%s does not fail", id)
		}
	}
	if t.Failed() {
		t.Logf("%s", out)
	}
}
