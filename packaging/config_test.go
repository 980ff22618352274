package packaging

import (
	"bytes"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"berth/agent/command"
	"berth/coordinator/daemon"
)

// A line of the shipped file that is a setting once its # is taken away. Explanations have a space after theirs.
var commented = regexp.MustCompile(`(?m)^#([^ \n].*|  .*)$`)

// The shipped files are comments only: what they show has to be what the programs read, all of it, and documented.
func TestShippedConfigurationShowsEveryKey(t *testing.T) {
	for _, c := range []struct {
		file, page string
		into       any
	}{
		{"etc/coordinator.yaml", "man/berth-coordinator.yaml.5", &daemon.Config{}},
		{"etc/agent.yaml", "man/berth-agent.yaml.5", &command.Settings{}},
	} {
		text, err := os.ReadFile(c.file)
		if err != nil {
			t.Fatal(err)
		}
		page, err := os.ReadFile(c.page)
		if err != nil {
			t.Fatal(err)
		}
		decoder := yaml.NewDecoder(bytes.NewReader(commented.ReplaceAll(text, []byte("$1"))))
		decoder.KnownFields(true)
		if err := decoder.Decode(c.into); err != nil {
			t.Errorf("%s: %v", c.file, err)
		}
		eachKey(reflect.ValueOf(c.into).Elem(), func(key string, value reflect.Value) {
			if value.IsZero() && !strings.Contains(string(text), "\n#"+key+": false\n") {
				t.Errorf("%s does not show %s", c.file, key)
			}
			if !strings.Contains(string(page), "Li "+key) {
				t.Errorf("%s does not explain %s", c.page, key)
			}
		})
	}
}

// eachKey visits the keys of a configuration struct, those of nested ones too.
func eachKey(v reflect.Value, visit func(key string, value reflect.Value)) {
	for field, value := range v.Fields() {
		if !field.IsExported() {
			continue
		}
		key, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		visit(key, value)
		if value.Kind() == reflect.Struct {
			eachKey(value, visit)
		}
	}
}
