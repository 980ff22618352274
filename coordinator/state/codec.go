package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// commandFormat is the first byte of an encoded command. Another format gets another number; the old ones are decoded
// for ever, because a log may hold them.
const commandFormat = 1

// The causes for which an entry of the log cannot be read. A member that meets one must stop: going on would part it
// from the others.
var (
	ErrFormat = errors.New("unknown format of a command")
	ErrDecode = errors.New("unreadable command")
)

// Encode gives the command the form that it has in the log.
func (c *Command) Encode() ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte(commandFormat)
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(c); err != nil {
		return nil, fmt.Errorf("encode command %q: %w", c.Kind, err)
	}
	return out.Bytes()[:out.Len()-1], nil // without the encoder's line feed
}

// DecodeCommand reads an entry of the log. A field that this release does not know is an error, because a newer
// release acts on it. The error is ErrFormat, ErrLevel or ErrDecode.
func DecodeCommand(data []byte) (*Command, error) {
	if len(data) == 0 {
		return nil, fmt.Errorf("%w: it is empty", ErrDecode)
	}
	if data[0] != commandFormat {
		return nil, fmt.Errorf("%w: %d, this release reads %d", ErrFormat, data[0], commandFormat)
	}
	var command Command
	err := unmarshal(data[1:], &command)
	if err != nil {
		// What a later release has added cannot be read, but how late it is can.
		var later struct{ Level uint32 }
		if json.Unmarshal(data[1:], &later) == nil {
			command.Level = later.Level
		}
	}
	switch {
	case command.Level > FeatureLevel:
		return nil, tooHigh(command.Level)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrDecode, err)
	}
	return &command, nil
}

// unmarshal is strict: no unknown field, nothing after the value.
func unmarshal(data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the value")
	}
	return nil
}
