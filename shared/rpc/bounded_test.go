package rpc

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	berthv1 "berth/shared/gen/berth/v1"
)

var codec = boundedCodec{usual: 512, clean: func(proto.Message) {}}

// manyOf is an inventory with so many empty elements of a list.
func manyOf(outer, list protowire.Number, count int) []byte {
	element := append(protowire.AppendTag(nil, list, protowire.BytesType), 0)
	inside := bytes.Repeat(element, count)
	return protowire.AppendBytes(protowire.AppendTag(nil, outer, protowire.BytesType), inside)
}

func TestWhatWouldGrowIsNotDecoded(t *testing.T) {
	deep := []byte{}
	for range 2 * deepest { // a message in a message, which no list bounds
		deep = protowire.AppendBytes(protowire.AppendTag(nil, 3, protowire.BytesType), deep)
	}
	for name, data := range map[string][]byte{
		"8 million domains in 16 MiB": manyOf(3, 2, 8<<20), "30,000 domains in 60 KiB": manyOf(3, 2, 30_000),
		"8 million operations in 16 MiB": manyOf(2, 5, 8<<20), "samples": manyOf(4, 17, 1<<20),
		"broken": {0x1a, 0xff, 0xff, 0xff, 0xff, 0x7f},
	} {
		var message berthv1.SessionRequest
		if err := codec.Unmarshal(data, &message); err == nil || message.GetMessage() != nil {
			t.Errorf("%s: error %v, decoded %t", name, err, message.GetMessage() != nil)
		}
	}
	for _, count := range []int{1, 1 << 10, 1 << 20} {
		data := manyOf(3, 2, count)
		if err := codec.Unmarshal(data, &berthv1.SessionRequest{}); count > 1<<10 && !errors.Is(err, ErrTooLarge) || count == 1 && err != nil {
			t.Errorf("%d domains: %v", count, err)
		}
	}
	b := bill{left: math.MaxInt}
	nested := (&berthv1.SessionRequest{}).ProtoReflect().Descriptor()
	if err := b.spend(deep, nested, deepest+1); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a depth of %d: %v", deepest+1, err)
	}
}

// A large host is not a hostile one.
func TestAnInventoryOfManyDomainsIsDecoded(t *testing.T) {
	report := &berthv1.InventoryReport{Node: &berthv1.NodeInventory{HostName: "hv1"}}
	for i := range 4096 {
		uuid := fmt.Sprintf("6c0e8bd2-6f4f-4c55-8b3e-%012d", i)
		one := &berthv1.Domain{
			Uuid: uuid, Name: "web", State: berthv1.DomainState_DOMAIN_STATE_RUNNING, MemoryBytes: 1 << 30, Vcpus: 2, StartedAt: timestamppb.Now(),
			Devices: &berthv1.Devices{}, Bindings: &berthv1.Bindings{Bindings: []*berthv1.Binding{{}}},
		}
		for d := range 8 {
			source := &berthv1.DiskSource{Pool: "fast", Volume: uuid}
			one.Sources = append(one.Sources, source)
			one.Devices.Devices = append(one.Devices.Devices, &berthv1.Device{Kind: "disk", Key: fmt.Sprint("vd", d), Source: source, Format: "raw"})
		}
		report.Domains = append(report.Domains, one)
	}
	data, err := codec.Marshal(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_Inventory{Inventory: report}})
	if err != nil {
		t.Fatal(err)
	}
	var message berthv1.SessionRequest
	if err := codec.Unmarshal(data, &message); err != nil || !proto.Equal(message.GetInventory(), report) {
		t.Errorf("%d bytes: %v", len(data), err)
	}
}

func TestWhatIsUnpackedHasAnEnd(t *testing.T) {
	packed := func(size int) *bytes.Buffer {
		var into bytes.Buffer
		writer := gzip.NewWriter(&into)
		_, _ = writer.Write(make([]byte, size))
		_ = writer.Close()
		return &into
	}
	g := &boundedGzip{bound: 101}
	for _, c := range []struct {
		size int
		want error
	}{{100, nil}, {101, nil}, {102, ErrTooLarge}, {64 << 20, ErrTooLarge}, {100, nil}} {
		if err := g.Reset(packed(c.size)); err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, g)
		if !errors.Is(err, c.want) || n > 101 {
			t.Errorf("%d bytes packed: %d unpacked, %v, want %v", c.size, n, err, c.want)
		}
	}
}

func TestTextsThatAreNotAsUsualAreLookedAt(t *testing.T) {
	for text, want := range map[string]bool{"plain": false, "esc\x1b": true, "öl": true, strings.Repeat("x", 513): true} {
		looked := false
		codec := boundedCodec{usual: 512, clean: func(proto.Message) { looked = true }}
		data, err := codec.Marshal(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_Result{Result: &berthv1.CommandResult{
			Domain: &berthv1.Domain{Name: text},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := codec.Unmarshal(data, &berthv1.SessionRequest{}); err != nil || looked != want {
			t.Errorf("%.20q: looked at %t, %v", text, looked, err)
		}
	}
}
