package daemon

import (
	"net"
	"net/http"
	"sync"

	"github.com/hashicorp/go-hclog"
)

// maxNew bounds the connections of one address that have not said anything sensible yet: TLS first, then a request. Who
// has is known by its certificate, or is bounded by what it may call.
const maxNew = 512

// doorkeeper counts new connections by address, so that one stranger cannot take all of them.
type doorkeeper struct {
	log hclog.Logger

	mu      sync.Mutex
	fresh   map[net.Conn]string
	waiting map[string]int
}

func newDoorkeeper(log hclog.Logger) *doorkeeper {
	return &doorkeeper{log: log, fresh: make(map[net.Conn]string), waiting: make(map[string]int)}
}

// watch is an http.Server's ConnState.
func (k *doorkeeper) watch(c net.Conn, state http.ConnState) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if state != http.StateNew {
		k.forget(c)
		return
	}
	host, _, err := net.SplitHostPort(c.RemoteAddr().String())
	if err != nil {
		host = c.RemoteAddr().String()
	}
	k.fresh[c] = host
	k.waiting[host]++
	if k.waiting[host] > maxNew {
		k.log.Warn("too many connections that say nothing; the newest is closed", "address", host, "limit", maxNew)
		_ = c.Close() // the server sees it and reports StateClosed
	}
}

func (k *doorkeeper) forget(c net.Conn) {
	host, waits := k.fresh[c]
	if !waits {
		return
	}
	delete(k.fresh, c)
	if k.waiting[host]--; k.waiting[host] == 0 {
		delete(k.waiting, host)
	}
}
