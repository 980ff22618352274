package config

import (
	"errors"
	"os"
	"testing"
	"time"
)

// Whatever a configuration holds, reading it ends with values or with a complaint about the file.
func FuzzParse(f *testing.F) {
	for _, path := range []string{"../../packaging/etc/agent.yaml", "../../packaging/etc/coordinator.yaml"} {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	for _, text := range []string{
		"name: a\nlisten: {api: :1}\nevery: 5s\nmany: [1, 2]\n", "name: [", "---\n---\n", "name: &a [*a]", "listen: !!str 7", "<<: {name: b}",
		"x: 1", "every: 9999999999999h", "? {name: a}\n: b", "labels: {a: b, a: c}", "\xff\xfe", "at: 2026-99-99",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var into struct {
			Name   string                `yaml:"name"`
			Listen struct{ API string }  `yaml:"listen"`
			Every  time.Duration         `yaml:"every"`
			Many   []int                 `yaml:"many"`
			Labels map[string]string     `yaml:"labels"`
			At     *time.Time            `yaml:"at"`
			Fences map[string][]struct{} `yaml:"fences"`
		}
		if err := parse("berth.yaml", data, &into); err != nil && !errors.Is(err, ErrSyntax) {
			t.Errorf("the complaint is no complaint about the file: %v", err)
		}
	})
}
