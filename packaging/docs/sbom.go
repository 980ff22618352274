package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	ours "berth/shared/buildinfo"
)

// What follows is the part of CycloneDX 1.6 that a list of linked modules needs (https://cyclonedx.org/docs/1.6/json).
type bom struct {
	Schema       string       `json:"$schema"`
	Format       string       `json:"bomFormat"`
	Spec         string       `json:"specVersion"`
	Serial       string       `json:"serialNumber,omitempty"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Timestamp string    `json:"timestamp,omitempty"`
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl"`
	Hashes     []fileHash `json:"hashes,omitempty"`
	Licences   []licence  `json:"licenses,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

// licence is one of those that a component is given under, by its name in SPDX.
type licence struct {
	License struct {
		ID string `json:"id"`
	} `json:"license"`
}

type fileHash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref string   `json:"ref"`
	On  []string `json:"dependsOn"`
}

// writeBOM writes what is linked into the binary, as the binary itself tells: modules with their versions and sums, and the Go
// standard library. The same binary gives the same file.
func writeBOM(binary string, info *debug.BuildInfo, all []linked, target string) error {
	content, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	made, err := bomOf(filepath.Base(binary), ours.Version(), info, content)
	if err != nil {
		return err
	}
	for i := range made.Components {
		component := &made.Components[i]
		of := slices.IndexFunc(all, func(one linked) bool { return one.path == component.Name })
		if of < 0 {
			return fmt.Errorf("nothing is known of the licence of %s", component.Name)
		}
		for _, id := range all[of].licences {
			var one licence
			one.License.ID = id
			component.Licences = append(component.Licences, one)
		}
	}
	if epoch := os.Getenv("SOURCE_DATE_EPOCH"); epoch != "" {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil {
			return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
		}
		made.Metadata.Timestamp = time.Unix(seconds, 0).UTC().Format(time.RFC3339)
	}
	data, err := json.MarshalIndent(made, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(target, append(data, '\n'), 0o644)
}

func bomOf(name, version string, info *debug.BuildInfo, content []byte) (bom, error) {
	sum := sha256.Sum256(content)
	program := component{
		Type: "application", Name: name, Version: version, PURL: "pkg:generic/" + name + "@" + escaped(version),
		Hashes: []fileHash{{"SHA-256", fmt.Sprintf("%x", sum)}},
	}
	program.Ref = program.PURL
	library := component{
		Type: "library", Name: "std", Version: strings.TrimPrefix(info.GoVersion, "go"),
		PURL: "pkg:golang/std@" + escaped(strings.TrimPrefix(info.GoVersion, "go")),
	}
	library.Ref = library.PURL
	made := bom{
		Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", Format: "CycloneDX", Spec: "1.6", Version: 1,
		Metadata: metadata{Component: program}, Components: []component{library},
	}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		if module.Version == "" || module.Sum == "" {
			return bom{}, fmt.Errorf("%s has module %s without a version or sum: it cannot be named", name, module.Path)
		}
		linked := component{
			Type: "library", Name: module.Path, Version: module.Version,
			PURL:       "pkg:golang/" + strings.ToLower(module.Path) + "@" + escaped(module.Version),
			Properties: []property{{"go:sum", module.Sum}},
		}
		linked.Ref = linked.PURL
		made.Components = append(made.Components, linked)
	}
	on := dependency{Ref: program.Ref, On: []string{}}
	for _, linked := range made.Components {
		on.On = append(on.On, linked.Ref)
	}
	made.Dependencies = []dependency{on}
	// A version 8 UUID: what it is made of decides it, so that the same binary has the same one.
	id := sha256.Sum256([]byte("berth bom " + name + " " + version + " " + fmt.Sprintf("%x", sum)))
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	made.Serial = fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:16])
	return made, nil
}

// escaped is a version in a package URL, where a plus sign stands for a space to some readers.
func escaped(version string) string {
	return strings.NewReplacer("%", "%25", "+", "%2B").Replace(version)
}
