// Package loopback gives tests and benchmarks addresses that stay free until somebody listens there: a member of a cluster has
// to know the others' addresses before they are up, and keeps its own over a restart.
package loopback

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// Ports below those that Linux gives to connections and to listeners on port 0, and above those of well-known services.
const (
	lowest  = 20000
	highest = 32000
)

// guards hold the ports that this process was given, for as long as it lives. They are UDP sockets, so that TCP is free: any
// other process that asks here finds the port taken, also while nobody listens.
var (
	mu     sync.Mutex
	guards []net.PacketConn
)

// Address is host and port of a TCP address on loopback that no other call gets, in this process or another one. The error is
// that there is none left.
func Address() (string, error) {
	mu.Lock()
	defer mu.Unlock()
	for range highest - lowest {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(lowest+rand.IntN(highest-lowest)))
		guard, err := net.ListenPacket("udp", address)
		if err != nil {
			continue
		}
		listener, err := net.Listen("tcp", address)
		if err != nil {
			_ = guard.Close()
			continue
		}
		_ = listener.Close() // nobody has connected: the port is free at once
		guards = append(guards, guard)
		return address, nil
	}
	return "", errors.New("no port is free on loopback")
}
