package packaging

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// What the format asks of a document, and that it names all that is linked in and nothing else.
func TestPackagesListWhatIsLinkedIn(t *testing.T) {
	for _, program := range []string{"berth", "berth-agent"} {
		data, err := os.ReadFile(filepath.Join(built, "stage/sbom", program+".cdx.json"))
		if err != nil {
			t.Fatal(err)
		}
		var bom struct {
			Format   string `json:"bomFormat"`
			Spec     string `json:"specVersion"`
			Serial   string `json:"serialNumber"`
			Version  int    `json:"version"`
			Metadata struct {
				Timestamp time.Time `json:"timestamp"`
				Component component `json:"component"`
			} `json:"metadata"`
			Components   []component `json:"components"`
			Dependencies []struct {
				Ref string   `json:"ref"`
				On  []string `json:"dependsOn"`
			} `json:"dependencies"`
		}
		if err := json.Unmarshal(data, &bom); err != nil {
			t.Fatal(err)
		}
		serial := regexp.MustCompile(`^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
		if bom.Format != "CycloneDX" || bom.Spec != "1.6" || bom.Version != 1 || !serial.MatchString(bom.Serial) ||
			bom.Metadata.Timestamp.IsZero() {
			t.Errorf("%s: %s %s, %q, %v", program, bom.Format, bom.Spec, bom.Serial, bom.Metadata.Timestamp)
		}
		if own := bom.Metadata.Component; own.Name != program || own.Version != version || len(own.Hashes) != 1 || own.Hashes[0].Content !=
			fmt.Sprintf("%x", digest(t, filepath.Join(built, "stage/bin", program))) {
			t.Errorf("%s is %+v", program, own)
		}
		refs := map[string]bool{bom.Metadata.Component.Ref: true}
		listed := map[string]string{}
		purl := regexp.MustCompile(`^pkg:golang/[a-z0-9./_-]+@[A-Za-z0-9.%-]+$`)
		for _, c := range bom.Components {
			licensed := len(c.Licences) > 0 && c.Licences[0].License.ID != ""
			if c.Type != "library" || c.Ref == "" || refs[c.Ref] || !purl.MatchString(c.PURL) || !licensed {
				t.Errorf("%s has component %+v", program, c)
			}
			refs[c.Ref], listed[c.Name] = true, c.Version
		}
		for _, dependency := range bom.Dependencies {
			for _, ref := range append(dependency.On, dependency.Ref) {
				if !refs[ref] {
					t.Errorf("%s: %s is no component", program, ref)
				}
			}
		}
		info, err := buildinfo.ReadFile(filepath.Join(built, "stage/bin", program))
		if err != nil {
			t.Fatal(err)
		}
		if len(listed) != len(info.Deps)+1 || listed["std"] != strings.TrimPrefix(info.GoVersion, "go") {
			t.Errorf("%s lists %d modules with std %s, linked are %d", program, len(listed)-1, listed["std"], len(info.Deps))
		}
		for _, module := range info.Deps {
			if listed[module.Path] != module.Version {
				t.Errorf("%s: %s is %q in the list, linked is %s", program, module.Path, listed[module.Path], module.Version)
			}
		}
	}
	// And it is in the packages.
	for pattern, path := range map[string]string{"berth_*.deb": "berth/berth", "berth-agent_*.deb": "berth-agent/berth-agent"} {
		out, err := exec.Command("dpkg-deb", "--contents", find(t, built, pattern)).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "/usr/share/doc/"+path+".cdx.json") {
			t.Errorf("%s has no %s.cdx.json: %v", pattern, path, err)
		}
	}
}

func TestALookForHolesSaysThatItWasSkipped(t *testing.T) {
	for _, database := range []string{"http://127.0.0.1:1", "file://" + t.TempDir()} {
		check := exec.Command("../.ci/vuln")
		check.Env = append(os.Environ(), "GOVULNDB="+database)
		if out, err := check.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "skipped: the database "+database) {
			t.Errorf("%v: %s", err, out)
		}
	}
}

type component struct {
	Type    string `json:"type"`
	Ref     string `json:"bom-ref"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl"`
	Hashes  []struct {
		Content string `json:"content"`
	} `json:"hashes"`
	Licences []struct {
		License struct {
			ID string `json:"id"`
		} `json:"license"`
	} `json:"licenses"`
}
