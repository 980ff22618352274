package daemon

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/doorkeeper"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// besiege holds connections to an address, each from one of 40 addresses, and opens those anew that are closed.
func besiege(ctx context.Context, t *testing.T, most int, at string, hold func(net.Conn)) {
	t.Helper()
	var work sync.WaitGroup
	var opened atomic.Int64
	t.Cleanup(work.Wait)
	for i := range most {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 2, byte(1+i%40))}}
		work.Go(func() {
			for ctx.Err() == nil {
				conn, err := dialer.DialContext(ctx, "tcp", at)
				if err != nil {
					time.Sleep(50 * time.Millisecond)
					continue
				}
				opened.Add(1)
				stop := context.AfterFunc(ctx, func() { conn.Close() })
				hold(conn)
				stop()
				conn.Close()
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	for deadline := time.Now().Add(30 * time.Second); opened.Load() < int64(most); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d connections to %s", opened.Load(), most, at)
		}
	}
}

func silent(conn net.Conn) { _, _ = conn.Read(make([]byte, 1)) }

// greeted goes through the handshake without a certificate, asks for something, and stays.
func greeted(conn net.Conn) {
	secure := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	if secure.Handshake() != nil {
		return
	}
	if _, err := fmt.Fprint(secure, "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n"); err == nil {
		_, _ = io.Copy(io.Discard, secure)
	}
}

func TestStrangersKeepNobodyOut(t *testing.T) {
	m := withConsole(t, freeAddress(t))
	config := m.load()
	ctx, end := context.WithCancel(t.Context())
	defer end()
	for _, at := range []string{config.Listen.API, config.Listen.Agent, config.Listen.Raft, config.Listen.Console} {
		besiege(ctx, t, 1000, at, silent)
	}
	besiege(ctx, t, 200, config.Listen.API, greeted)
	for range 5 {
		client := m.operator("") // a connection of its own
		within, cancel := context.WithTimeout(ctx, time.Minute)
		_, err := client.Status(within, connect.NewRequest(&berthv1.StatusRequest{}))
		for err != nil && within.Err() == nil { // one processor for 1,200 strangers and the race detector: a handshake may outlast its 10 s
			_, err = client.Status(within, connect.NewRequest(&berthv1.StatusRequest{}))
		}
		cancel()
		m.check(err)
		settings, err := pki.ClientConfig(place{m.data}.tls(), pki.RolePeer)
		m.check(err)
		conn, err := rpc.NewNames("").DialTLS(ctx, "tcp", config.Listen.Agent, settings)
		if err != nil {
			t.Fatalf("the agents' port: %v", err)
		}
		m.check(conn.SetDeadline(time.Now().Add(time.Minute)))
		_, err = fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		m.check(err)
		answer := make([]byte, 8)
		if _, err := conn.Read(answer); err != nil || !strings.HasPrefix(string(answer), "HTTP/") {
			t.Errorf("the agents' port answers %q, %v", answer, err)
		}
		conn.Close()
	}
}

// A request without a certificate is no proof of anything: such connections are bounded as well.
func TestConnectionsWithoutACertificateAreBounded(t *testing.T) {
	m := withConsole(t, freeAddress(t))
	crowded(t, m.load().Listen.API, doorkeeper.People(doorkeeper.Files()).Address)
	crowded(t, m.load().Listen.Console, visitors.Address)
}

// crowded opens more connections from one address than a port lets it have, and waits until the others are closed.
func crowded(t *testing.T, at string, most int) {
	t.Helper()
	var closed atomic.Int64
	ctx, end := context.WithCancel(t.Context())
	var work sync.WaitGroup
	defer work.Wait()
	defer end()
	var greetedOnce sync.WaitGroup
	const more = 30
	greetedOnce.Add(most + more)
	for range most + more {
		work.Go(func() {
			conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 2, 1)}}).DialContext(ctx, "tcp", at)
			if err != nil {
				greetedOnce.Done()
				return
			}
			stop := context.AfterFunc(ctx, func() { conn.Close() })
			defer stop()
			greetedOnce.Done()
			greeted(conn)
			if ctx.Err() == nil {
				closed.Add(1)
			}
			conn.Close()
		})
	}
	greetedOnce.Wait()
	for deadline := time.Now().Add(20 * time.Second); closed.Load() < more; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d connections of one address were closed", closed.Load(), most+more)
		}
	}
}
