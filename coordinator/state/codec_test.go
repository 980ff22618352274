package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// asBefore reads as encoding/json does, which read the logs of all releases up to 0.5.
func asBefore(data []byte, into any) error {
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

// compareReaders tells whether data is read as before: taken by both or by neither, and with the same outcome.
func compareReaders(t *testing.T, data []byte) (taken bool) {
	t.Helper()
	var now, before Command
	errNow, errBefore := unmarshal(data, &now), asBefore(data, &before)
	if (errNow == nil) != (errBefore == nil) {
		t.Fatalf("it is read with %v, before with %v: %s", errNow, errBefore, data)
	}
	if errNow != nil {
		return false
	}
	if diff := cmp.Diff(before, now); diff != "" {
		t.Fatalf("%s\nis read otherwise than before: %s", data, diff)
	}
	return true
}

// Members of two releases read one log, so what they read has to be the same, to the last nil.
func TestCommandsAreReadAsByFormerReleases(t *testing.T) {
	for _, line := range goldenLines(t) {
		if line[0] == commandFormat {
			compareReaders(t, line[1:])
		}
	}
	var full Command
	fill(reflect.ValueOf(&full).Elem())
	full.At = time.Date(2026, 2, 3, 4, 5, 6, 123456789, time.UTC)
	data, err := json.Marshal(full)
	if err != nil {
		t.Fatal(err)
	}
	if !compareReaders(t, data) {
		t.Errorf("a command with everything in it is refused: %s", data)
	}
	for text, taken := range map[string]bool{
		`{"key":"a","key":"b"}`:                               true,
		`{"KEY":"a"}`:                                         true,
		`{"key":null,"expect":null,"meta":null}`:              true,
		`{"key":"\ud800 \u0000 ` + "\xff" + `"}`:              true,
		`{"key":"a"} `:                                        true,
		`{"key":"a"}{}`:                                       false,
		`{"key":"a"},`:                                        false,
		`{"key":1}`:                                           false,
		`{"quota":1}`:                                         false,
		`{"level":-1}`:                                        false,
		`{"level":4294967296}`:                                false,
		`{"at":"2026-02-30T00:00:00Z"}`:                       false,
		`{"nodes":[{"keys":{"a":1e400}}]}`:                    false,
		`{"nodes":[{"keys":{"a":-0,"a":0.1}}]}`:               true,
		`{"nodes":[{}],"nodes":[{"id":"a"}],"nodes":[]}`:      true,
		`{"expect":[{"revision":18446744073709551615}]}`:      true,
		`{"decisions":[{"inputs":{"standing":"AQ=="}}]}`:      true,
		`{"decisions":[{"inputs":{"standing":"AQ"}}]}`:        false,
		`{"decisions":[{"nodes":[],"ranks":[]}],"delete":[]}`: true,
		``: false, `[]`: false, `null`: true, `{"key":"a"`: false, "\xef\xbb\xbf{}": false,
	} {
		if got := compareReaders(t, []byte(text)); got != taken {
			t.Errorf("%s is taken: %t", text, got)
		}
	}
	if deep := strings.Repeat("[", 1<<16); compareReaders(t, []byte(deep)) {
		t.Error("a depth without end is taken")
	}
}
