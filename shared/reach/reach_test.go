package reach

import (
	"net"
	"testing"
)

func TestThisMachineIsNoOther(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	own := listener.Addr().String()
	if reached := Any(t.Context(), []string{own}); reached != "" {
		t.Errorf("a name that leads back here counts as an answer of %s", reached)
	}
	// A connection from another address of the machine stands for another machine.
	_, port, _ := net.SplitHostPort(own)
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.2")}}
	if !answers(t.Context(), from, "127.0.0.1:"+port) {
		t.Error("what answers is not reached")
	}
	listener.Close()
	if reached := Any(t.Context(), []string{own, "127.0.0.1:1"}); reached != "" {
		t.Errorf("%s answers, and nobody listens there", reached)
	}
}
