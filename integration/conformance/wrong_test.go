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
	text, err := os.ReadFile(filepath.Join(folder, "wrong.json"))
	if err != nil {
		t.Fatal(err)
	}
	var suite struct{ Cases []struct{ ID string } }
	if err := json.Unmarshal(text, &suite); err != nil || len(suite.Cases) == 0 {
		t.Fatal("no cases", err)
	}
	run := exec.Command(os.Args[0], "-test.run", "^TestConformance$")
	run.Env = append(os.Environ(), foldersVariable+"="+folder)
	out, err := run.CombinedOutput()
	if err == nil {
		t.Error("wrong cases pass")
	}
	for _, one := range suite.Cases {
		if !strings.Contains(string(out), "FAIL: TestConformance/"+one.ID+" (") &&
			!strings.Contains(string(out), `"`+one.ID+`"`) { // a case that cannot be read has no test of its own
			t.Errorf("%s does not fail", one.ID)
		}
	}
	if t.Failed() {
		t.Logf("%s", out)
	}
}
