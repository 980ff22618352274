package loopback

import (
	"net"
	"testing"
)

func TestAddress(t *testing.T) {
	seen := map[string]bool{}
	for range 200 {
		address, err := Address()
		if err != nil {
			t.Fatal(err)
		}
		if seen[address] {
			t.Errorf("%s was given twice", address)
		}
		seen[address] = true
		// As another process would find it.
		if guard, err := net.ListenPacket("udp", address); err == nil {
			t.Errorf("%s is not kept", address)
			_ = guard.Close()
		}
		for range 2 { // it is free, and again after a restart
			listener, err := net.Listen("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			if err := listener.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
