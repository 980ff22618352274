package rpc

import (
	"testing"

	"google.golang.org/protobuf/proto"

	berthv1 "berth/shared/gen/berth/v1"
)

// What an agent sends is estimated before it is decoded. No bytes make that panic, and what is decoded is what protobuf decodes.
func FuzzBounded(f *testing.F) {
	whole, err := codec.Marshal(&berthv1.SessionRequest{Sequence: 1, Message: &berthv1.SessionRequest_Inventory{
		Inventory: &berthv1.InventoryReport{Node: &berthv1.NodeInventory{HostName: "hv1"}, Domains: []*berthv1.Domain{{Uuid: "x", Name: "web"}}},
	}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(manyOf(3, 2, 100))
	f.Add([]byte{0x1a, 0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, message := range []proto.Message{&berthv1.SessionRequest{}, &berthv1.TunnelRequest{}} {
			if err := codec.Unmarshal(data, message); err != nil {
				continue
			}
			plain := message.ProtoReflect().New().Interface()
			if err := proto.Unmarshal(data, plain); err != nil || !proto.Equal(plain, message) {
				t.Errorf("%x: it is decoded to %v, and plainly to %v, %v", data, message, plain, err)
			}
		}
	})
}
