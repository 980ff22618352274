// Package reach tells whether another machine answers. Coordinators and agents ask that of a machine of which a fence device says
// that it is off.
package reach

import (
	"context"
	"net"
	"sync"
	"time"
)

// within is for one address. A machine in the same network answers within milliseconds, and one that is off never.
const within = 2 * time.Second

// Any is the first of some addresses (HOST:PORT) that takes a connection; empty: none does. Where a name leads back to this machine
// itself, that is no answer.
func Any(ctx context.Context, addresses []string) string {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var tries sync.WaitGroup
	reached := make([]bool, len(addresses))
	for i, address := range addresses {
		tries.Go(func() { reached[i] = answers(ctx, net.Dialer{}, address) })
	}
	tries.Wait()
	for i, address := range addresses {
		if reached[i] {
			return address
		}
	}
	return ""
}

func answers(ctx context.Context, dialer net.Dialer, address string) bool {
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	defer conn.Close()
	here, _, _ := net.SplitHostPort(conn.LocalAddr().String())
	there, _, _ := net.SplitHostPort(conn.RemoteAddr().String())
	return here != there
}
