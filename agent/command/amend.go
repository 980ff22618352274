package command

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"go.yaml.in/yaml/v3"

	"berth/shared/config"
)

// amend changes some keys of a configuration file and leaves the rest, comments included, as somebody wrote it. A file
// that does not exist is made.
func amend(path string, changes []change) error {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if len(document.Content) == 0 { // nothing but comments: what is set comes after them
		out.Write(text)
		if len(text) > 0 {
			out.WriteByte('\n')
		}
		document = yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{{Kind: yaml.MappingNode, Tag: "!!map"}}}
	}
	for _, c := range changes {
		if err := c.apply(document.Content[0]); err != nil {
			return err
		}
	}
	if err := encoder.Encode(&document); err != nil {
		return err
	}
	if err := encoder.Close(); err != nil {
		return err
	}
	return config.WriteFile(path, out.Bytes(), 0o644)
}

// change sets one key of a configuration.
type change struct {
	key   string
	value any
}

func (c change) apply(mapping *yaml.Node) error {
	var value yaml.Node
	if err := value.Encode(c.value); err != nil {
		return err
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == c.key {
			value.LineComment = mapping.Content[i+1].LineComment
			mapping.Content[i+1] = &value
			return nil
		}
	}
	mapping.Content = append(mapping.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: c.key}, &value)
	return nil
}
