package daemon

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"os"
	"time"

	"berth/coordinator/api/sessions"
	"berth/coordinator/console"
	"berth/coordinator/doorkeeper"
	"berth/coordinator/session"
	"berth/shared/pki"
	"berth/shared/rpc"
	"berth/shared/scrape"
)

// How long a browser may take. Its pages are small; the feed of one that is open sets deadlines of its own.
const (
	browserRead   = 15 * time.Second
	browserWrite  = 60 * time.Second
	browserIdle   = 2 * time.Minute
	browserHeader = 16 << 10
)

// visitors are how many connections browsers may have. One that is not logged in gives way when another comes from its address. One that
// is counts for its session: a browser keeps one for all of its pages, and all operators together have at most 500 sessions.
var visitors = doorkeeper.Limits{Address: 64, All: 640, Holder: 256, Known: 1024}

// reception is the part of a coordinator that lets browsers in.
type reception struct{ *daemon }

// open opens the console's port. Guests do without a console, so a port that is taken keeps no coordinator from its work.
func (d reception) open(ctx context.Context) net.Listener {
	if d.config.Listen.Console == scrape.Off {
		return nil
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", d.config.Listen.Console)
	if err != nil {
		d.log.Error("the console does not listen: set the key listen.console to a free port, or to off, and start the coordinator again",
			"error", err)
		return nil
	}
	port, _ := portOf(d.config.Listen.Console) // checked by complete
	d.consoleAddress = net.JoinHostPort(d.config.Advertise, port)
	return listener
}

// place is where this member's console is, for links to it.
func (d reception) place() sessions.Place {
	if d.consoleAddress == "" {
		return sessions.Place{}
	}
	at := sessions.Place{Address: d.consoleAddress}
	if certificate, err := os.ReadFile(d.home.tls().Certificate); err == nil {
		at.Fingerprint, _ = pki.Fingerprint(certificate) // without it the address is told all the same
	}
	return at
}

// server shows browsers the console, by the certificate that this member has for its other ports.
func (d reception) server(requests context.Context) (*http.Server, error) {
	settings, err := pki.ServerConfig(d.home.tls(), tls.NoClientCert)
	if err != nil {
		return nil, err
	}
	log := d.log.Named("console")
	keeper := doorkeeper.New(visitors, func(string) bool { return false }, log)
	shown := console.New(console.Config{Now: time.Now, Log: log, Desk: frontDesk{keeper, &sessions.Desk{
		Records: d.store, Now: time.Now, ClusterID: d.who.ClusterID, API: d.api.Handler(), Self: d.bearer,
	}}})
	server := rpc.NewServer("", shown.Handler(), settings, log)
	server.BaseContext = func(net.Listener) context.Context { return requests }
	server.ConnState = keeper.Watch
	server.ReadTimeout, server.WriteTimeout, server.IdleTimeout, server.MaxHeaderBytes = browserRead, browserWrite, browserIdle, browserHeader
	return server, nil
}

// frontDesk gives the console the desk in its own words.
type frontDesk struct {
	keeper *doorkeeper.Keeper
	*sessions.Desk
}

// Visitor is who has shown a cookie. His connection counts for his session from then on.
func (f frontDesk) Visitor(cookie, address string) (console.Visitor, bool) {
	who, known := f.Desk.Visitor(cookie, address)
	if !known {
		return console.Visitor{}, false
	}
	f.keeper.Showed(address, who.Session.ID)
	return console.Visitor{
		Operator: who.Operator, ReadOnly: who.Session.Role != session.Operate, Until: who.Session.Until, API: who.API,
	}, true
}
