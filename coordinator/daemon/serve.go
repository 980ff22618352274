package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	sd "github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sync/errgroup"

	"berth/coordinator/doorkeeper"
	traced "berth/coordinator/tracing"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// How long the parts of a stop may take. Together they stay below the 30 s that the unit gives.
const (
	streamsGrace   = 2 * time.Second // for calls and streams to end by themselves
	consensusGrace = 10 * time.Second
)

// serve answers on both ports, takes part in Raft and leads when it is this member's turn, until the context ends or
// something fails for good.
func (d *daemon) serve(ctx context.Context, l *listeners) error {
	requests, endRequests := context.WithCancel(context.WithoutCancel(ctx))
	defer endRequests()
	apiServer, noAPI := d.server(requests, d.api.Handler(), tls.VerifyClientCertIfGiven, doorkeeper.People)
	agentServer, noAgents := d.server(requests, d.keeper.Authorise(d.agents.Handler()), tls.RequireAndVerifyClientCert, doorkeeper.Agents)
	consoleServer, noConsole := reception{d}.server(requests)
	if err := errors.Join(noAPI, noAgents, noConsole); err != nil {
		return errors.Join(err, d.closeConsensus())
	}

	group, running := errgroup.WithContext(ctx)
	group.Go(func() error { return listenOn(apiServer, l.api) })
	group.Go(func() error { return listenOn(agentServer, l.agent) })
	if l.console != nil {
		group.Go(func() error { return listenOn(consoleServer, l.console) })
	}
	group.Go(func() error { d.takeTurns(); return nil })
	for _, work := range []func(context.Context){
		d.stayMember, d.tellHealth, d.keeper.Watch, d.rememberRevoked, d.keepCertificate, succession{d}.followAuthorities, d.backups.run,
		d.keepTotals, d.history.Run, d.figures().Run, d.feedWatchdog,
	} {
		group.Go(func() error { work(running); return nil })
	}
	group.Go(func() error {
		traced.Run(running, traced.Config{
			Traces: d.config.Traces, Member: d.who.Name, State: d.store.Snapshot, Leads: d.consensus.IsLeader, Log: d.log.Named("traces"),
		})
		return nil
	})
	group.Go(func() error {
		select {
		case err := <-d.fatal:
			return fatalError{err}
		case <-running.Done():
			return nil
		}
	})
	d.tellSystemd(sd.SdNotifyReady)

	<-running.Done()
	d.tellSystemd(sd.SdNotifyStopping)
	if cause := context.Cause(running); errors.As(cause, new(fatalError)) {
		// The store may hang, and everything that waits for it. The process ends now.
		endRequests()
		return errors.Join(cause, apiServer.Close(), agentServer.Close(), consoleServer.Close())
	}
	d.log.Info("coordinator stops")
	d.handOver()
	d.api.Stop()
	d.agents.Stop()
	closeServers(endRequests, apiServer, agentServer, consoleServer)
	err := d.closeConsensus()
	d.peers.CloseIdleConnections()
	d.asking.CloseIdleConnections()
	return errors.Join(group.Wait(), err)
}

// fatalError is why this member cannot go on.
type fatalError struct{ error }

func (e fatalError) Unwrap() error { return e.error }

func (d *daemon) server(requests context.Context, h http.Handler, auth tls.ClientAuthType, share doorkeeper.Share) (*http.Server, error) {
	settings, err := pki.ServerConfig(d.home.tls(), auth)
	if err != nil {
		return nil, err
	}
	server := rpc.NewServer("", h, settings, d.log.Named("http"))
	server.BaseContext = func(net.Listener) context.Context { return requests }
	server.ConnState = doorkeeper.New(share(doorkeeper.Files()), d.consensus.MemberFrom, d.log).Watch
	return server, nil
}

func listenOn(server *http.Server, l net.Listener) error {
	if err := server.ServeTLS(l, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve on %s: %w", l.Addr(), err)
	}
	return nil
}

// handOver gives the leadership to another member, while this one still answers: calls go on without a pause.
func (d *daemon) handOver() {
	if !d.consensus.IsLeader() {
		return
	}
	if err := d.consensus.Transfer(context.Background()); err != nil {
		d.log.Debug("the leadership was not handed on", "reason", err)
	}
}

// closeServers lets calls end, for a while.
func closeServers(endRequests func(), servers ...*http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), streamsGrace)
	defer cancel()
	var closing errgroup.Group
	for _, server := range servers {
		closing.Go(func() error { return server.Shutdown(ctx) })
	}
	_ = closing.Wait() // whatever has not ended is ended now
	endRequests()
	for _, server := range servers {
		_ = server.Close()
	}
}

func (d *daemon) closeConsensus() error {
	ctx, cancel := context.WithTimeout(context.Background(), consensusGrace)
	defer cancel()
	if err := d.consensus.Shutdown(ctx); err != nil {
		return fmt.Errorf("close the Raft store: %w", err)
	}
	return nil
}

func (d *daemon) tellSystemd(state string) {
	if _, err := sd.SdNotify(false, state); err != nil {
		d.log.Warn("systemd could not be told", "state", state, "error", err)
	}
}

// feedWatchdog tells systemd, if it wants to know, that this process is alive: not only scheduled, but answering about
// its consensus.
func (d *daemon) feedWatchdog(ctx context.Context) {
	patience, err := sd.SdWatchdogEnabled(false)
	if err != nil || patience == 0 {
		return
	}
	ticker := time.NewTicker(patience / 3)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			d.consensus.Stats()
			d.tellSystemd(sd.SdNotifyWatchdog)
		}
	}
}
