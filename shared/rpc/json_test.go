package rpc

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	berthv1 "berth/shared/gen/berth/v1"
)

func TestJSONHasTheNamesOfTheProtocol(t *testing.T) {
	rule := &berthv1.Group{Name: "g", VmsRule: &berthv1.AffinityRule{Enabled: new(true), Enforcing: new(true)}}
	for _, name := range []string{"json", "json; charset=utf-8"} {
		codec := jsonCodec{name}
		data, err := codec.Marshal(rule)
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(data, &fields); err != nil || fields["vms_rule"] == nil || fields["vmsRule"] != nil {
			t.Errorf("%s: %s, %v", name, data, err)
		}
	}
}

func TestJSONIsReadInBothSpellings(t *testing.T) {
	want := &berthv1.Group{Name: "g", VmsRule: &berthv1.AffinityRule{Enabled: new(true)}}
	for _, text := range []string{
		`{"name": "g", "vms_rule": {"enabled": true}}`, `{"name": "g", "vmsRule": {"enabled": true}}`,
		`{"name": "g", "vms_rule": {"enabled": true, "of a newer release": 1}, "another": {}}`,
	} {
		got := &berthv1.Group{}
		if err := (jsonCodec{"json"}).Unmarshal([]byte(text), got); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	for name, text := range map[string]string{"nothing": "", "no JSON": "{", "another type": `{"name": 7}`} {
		if err := (jsonCodec{"json"}).Unmarshal([]byte(text), &berthv1.Group{}); err == nil {
			t.Errorf("%s is read", name)
		}
	}
}

func TestOnlyMessagesAreWrittenAsJSON(t *testing.T) {
	if data, err := (jsonCodec{"json"}).Marshal("text"); err == nil {
		t.Errorf("written as %s", data)
	}
	if err := (jsonCodec{"json"}).Unmarshal([]byte("{}"), new(string)); err == nil {
		t.Error("read into a string")
	}
}
