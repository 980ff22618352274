package state

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
)

// An entry that can be decoded can be applied, its commands are what their own encoding decodes to, and it leaves a state that
// can be saved and restored.
func FuzzCommand(f *testing.F) {
	for _, line := range goldenLines(f) {
		f.Add(line)
	}
	f.Add([]byte("\x01" + `{"key":"k","kind":"x","delete":[{"table":"node","id":"n1"}],"expect":[{"table":"meta","id":"\u0000"}]}`))
	f.Add([]byte("\x02\x00\x00\x00\x03\x01{}\x00\x00\x00\x03\x01{}"))
	f.Add([]byte("\x03{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		commands, err := DecodeEntry(data)
		if err != nil {
			return
		}
		for _, command := range commands {
			if command.Check != nil {
				return // a check that fails ends the member, as it should
			}
			again, err := command.Encode()
			if err != nil {
				t.Fatalf("decoded but not encodable: %v", err)
			}
			if _, err := DecodeCommand(again); err != nil {
				t.Fatalf("encoded but not decodable: %v", err)
			}
		}
		m := lived(t)
		m.fsm.Apply(&raft.Log{Index: m.index + 1, Type: raft.LogCommand, Data: data})
		restored, err := Load(bytes.NewReader(saved(t, m.store.Snapshot())))
		if err != nil {
			t.Fatalf("a snapshot of an applied state cannot be restored: %v", err)
		}
		if !bytes.Equal(saved(t, m.store.Snapshot()), saved(t, restored.Snapshot())) {
			t.Fatal("the restored state is another one")
		}
	})
}

// Whatever a snapshot holds, it is restored or refused; and what is restored can be saved and restored again.
func FuzzSnapshot(f *testing.F) {
	f.Add(saved(f, lived(f).store.Snapshot()))
	f.Add(saved(f, newMember(f).store.Snapshot()))
	f.Add(craft("node", `{"id":"n1","name":"a"}`))
	f.Add(craft("operation", `{"id":"o1","vm":"v1","phase":"dispatched"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		store, err := Load(bytes.NewReader(data))
		if err != nil {
			return
		}
		if _, err := Load(bytes.NewReader(saved(t, store.Snapshot()))); err != nil {
			t.Fatalf("restored once but not twice: %v", err)
		}
	})
}

// Sums keep the fuzzer out of the records, so they have a target of their own.
func FuzzRecords(f *testing.F) {
	for i := range sections {
		f.Add(uint8(i), []byte(`{"id":"a","name":"b"}`))
	}
	f.Fuzz(func(t *testing.T, table uint8, record []byte) {
		name := sections[int(table)%len(sections)].name
		store, err := Load(bytes.NewReader(craft(name, string(record))))
		if err != nil {
			return
		}
		if _, err := Load(bytes.NewReader(saved(t, store.Snapshot()))); err != nil {
			t.Fatalf("restored once but not twice: %v", err)
		}
	})
}

func goldenLines(f testing.TB) [][]byte {
	data, err := os.ReadFile(filepath.Join("testdata", "golden", release, "log"))
	if err != nil {
		f.Fatal(err)
	}
	var lines [][]byte
	for line := range strings.FieldsSeq(string(data)) {
		decoded, err := hex.DecodeString(line)
		if err != nil {
			f.Fatal(err)
		}
		lines = append(lines, decoded)
	}
	return lines
}

// Whatever a command looks like, it is read as by former releases.
func FuzzReading(f *testing.F) {
	for _, line := range goldenLines(f) {
		f.Add(line[1:])
	}
	f.Add([]byte(`{"Key":"a","key":"b","nodes":[{"keys":{"a":-0}}],"at":null}`))
	f.Fuzz(func(t *testing.T, data []byte) { compareReaders(t, data) })
}
