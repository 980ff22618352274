package inventory

import "testing"

func TestWhereOtherNodesReachANode(t *testing.T) {
	for _, c := range []struct{ uri, host, want string }{
		{"qemu+tls://node1/system", "", "node1:16514,node1:22"},
		{"qemu+tcp://10.0.0.1/system", "10.9.0.1", "10.0.0.1:16509,10.0.0.1:22,10.9.0.1:16509,10.9.0.1:22"},
		{"qemu+ssh://node1/system", "node1", "node1:22"},
		{"qemu+tls://[fd00::1]:17000/system", "", "[fd00::1]:17000,[fd00::1]:22"},
		{"", "", ""},
	} {
		if got := peers(c.uri, c.host); got != c.want {
			t.Errorf("%s, %s: %s; want %s", c.uri, c.host, got, c.want)
		}
	}
}
