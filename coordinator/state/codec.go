package state

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	jsonv2 "github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"berth/coordinator/packing"
	"berth/coordinator/roundtrip"
	"berth/shared/buildinfo"
)

// commandFormat is the first byte of an encoded command. Another format gets another number; the old ones are decoded
// for ever, because a log may hold them. 3 is packing.Format.
const commandFormat = 1

// groupFormat is the first byte of an entry that holds several commands: each has its length before it, as four bytes
// with the highest first, and then its own format.
const groupFormat = 2

// PackLevel is the feature level from which entries may be packed, and commands may leave out what stays (see Command.Lean).
const PackLevel = 3

// maxUnpacked bounds what an entry becomes in memory, in bytes. It is the largest entry that is ever packed.
const maxUnpacked = MaxCommand

// MaxGroup is the size in bytes that an entry with several commands may have.
const MaxGroup = 512 << 10

// The causes for which an entry of the log cannot be read. A member that meets one must stop: going on would part it
// from the others.
var (
	ErrFormat = errors.New("unknown format of a command")
	ErrDecode = errors.New("unreadable command")
)

// Encode gives the command the form that it has in an Entry, alone or with others, with the feature level that it takes.
func (c *Command) Encode() ([]byte, error) {
	data, _, err := c.write(false)
	return data, err
}

// Written is Encode with what DecodeCommand gives of it, for Store.Foresee; nil where that is known from the bytes alone.
func (c *Command) Written() ([]byte, *Command, error) { return c.write(true) }

func (c *Command) write(copied bool) (data []byte, read *Command, err error) {
	leveled := *c
	leveled.Level = c.needed()
	if leveled.Level >= releaseLevel {
		leveled.Release = cmp.Or(c.Release, buildinfo.Version())
	}
	var out bytes.Buffer
	out.WriteByte(commandFormat)
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(&leveled); err != nil {
		return nil, nil, fmt.Errorf("encode command %q: %w", c.Kind, err)
	}
	if copied && leveled.Level <= FeatureLevel {
		read, _ = roundtrip.Copy(&leveled)
	}
	return out.Bytes()[:out.Len()-1], read, nil // without the encoder's line feed
}

// DecodeCommand reads one command as Encode gives it. A field that this release does not know is an error, because a newer
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
		var later struct {
			Level   uint32
			Release string
		}
		if json.Unmarshal(data[1:], &later) == nil {
			command.Level, command.Release = later.Level, later.Release
		}
	}
	switch {
	case command.Level > FeatureLevel:
		return nil, tooHigh(command.Level, command.Release)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrDecode, err)
	}
	return &command, nil
}

// Group makes one entry of the log of encoded commands. Each of them is applied as if it were alone, with a Result of its own,
// after the ones before it; all of them have the entry's index. More than one may be proposed from GroupLevel on.
func Group(commands [][]byte) []byte {
	if len(commands) == 1 {
		return commands[0]
	}
	size := 1
	for _, one := range commands {
		size += GroupedSize(one)
	}
	entry := append(make([]byte, 0, size), groupFormat)
	for _, one := range commands {
		entry = append(binary.BigEndian.AppendUint32(entry, uint32(len(one))), one...)
	}
	return entry
}

// Entry makes one entry of the log of encoded commands, in a form that every member of a feature level can read. More than one
// command may be given from GroupLevel on.
func Entry(commands [][]byte, level uint32) []byte {
	entry := Group(commands)
	if level < PackLevel || len(entry) > maxUnpacked {
		return entry
	}
	return packing.Pack(entry)
}

// GroupedSize is what an encoded command adds to an entry with several, in bytes.
func GroupedSize(command []byte) int { return 4 + len(command) }

// DecodeEntry reads the commands of one entry of the log. The error is that of DecodeCommand.
func DecodeEntry(data []byte) ([]*Command, error) {
	data, err := packing.Unpack(data, maxUnpacked)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDecode, err)
	}
	if len(data) == 0 || data[0] != groupFormat {
		command, err := DecodeCommand(data)
		return []*Command{command}, err
	}
	var commands []*Command
	for rest := data[1:]; len(rest) > 0; {
		if len(rest) < 4 {
			return nil, fmt.Errorf("%w: command %d of the entry has no length", ErrDecode, len(commands)+1)
		}
		length := binary.BigEndian.Uint32(rest)
		if rest = rest[4:]; uint64(length) > uint64(len(rest)) {
			return nil, fmt.Errorf("%w: command %d of the entry has %d bytes of %d", ErrDecode, len(commands)+1, len(rest), length)
		}
		command, err := DecodeCommand(rest[:length])
		if err != nil {
			return nil, fmt.Errorf("command %d of the entry: %w", len(commands)+1, err)
		}
		commands, rest = append(commands, command), rest[length:]
	}
	if len(commands) < 2 {
		return nil, fmt.Errorf("%w: an entry for several commands has %d", ErrDecode, len(commands))
	}
	return commands, nil
}

// strictly reads JSON as encoding/json does, and refuses fields that nobody knows. It does not look for what else is wrong
// after the first error.
var strictly = jsonv2.JoinOptions(
	jsonv1.DefaultOptionsV1(), jsonv1.ReportErrorsWithLegacySemantics(false), jsonv2.RejectUnknownMembers(true))

// unmarshal is strict: no unknown field, nothing after the value. To read a command costs a member more than to apply it,
// and the successor of encoding/json takes about half as long. What it reads from the same bytes is the same; a test compares.
func unmarshal(data []byte, into any) error { return jsonv2.Unmarshal(data, into, strictly) }
