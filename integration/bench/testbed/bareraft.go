package testbed

import (
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"

	"berth/shared/pki"
)

// BareEntry is the size in bytes of a command of the bare twin.
const BareEntry = 256

// BareRaft is what Berth's consensus is compared to: hashicorp/raft with three members in one process, raft-boltdb with
// fsync, TCP over loopback, and a state machine that does nothing.
type BareRaft struct {
	members []*raft.Raft
	stores  []*raftboltdb.BoltStore
	trans   []*raft.NetworkTransport
	leader  *raft.Raft
	command []byte
}

// RaiseBare starts the members with their logs below dir. Entry is the size of a command in bytes; secure puts the
// transport under mutual TLS as Berth's is.
func RaiseBare(dir string, entry int, secure bool) (_ *BareRaft, err error) {
	b := &BareRaft{command: make([]byte, entry)}
	if _, err := rand.Read(b.command); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Close())
		}
	}()
	listen := listenPlain
	if secure {
		files, err := peerFiles(filepath.Join(dir, "tls"))
		if err != nil {
			return nil, err
		}
		listen = func() (raft.StreamLayer, error) { return listenSecure(files) }
	}
	var configuration raft.Configuration
	for i := range 3 {
		layer, err := listen()
		if err != nil {
			return nil, err
		}
		b.trans = append(b.trans, raft.NewNetworkTransport(layer, 3, 10*time.Second, io.Discard))
		configuration.Servers = append(configuration.Servers, raft.Server{
			ID: raft.ServerID(fmt.Sprintf("bare%d", i+1)), Address: b.trans[i].LocalAddr(),
		})
	}
	for i, server := range configuration.Servers {
		if err := b.start(filepath.Join(dir, string(server.ID)), server.ID, b.trans[i], configuration); err != nil {
			return nil, fmt.Errorf("bare raft: %w", err)
		}
	}
	return b, b.awaitLeader(10 * time.Second)
}

func (b *BareRaft) start(
	dir string, id raft.ServerID, transport raft.Transport, configuration raft.Configuration,
) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	store, err := raftboltdb.New(raftboltdb.Options{
		Path: filepath.Join(dir, "raft.db"), BoltOptions: &bbolt.Options{NoFreelistSync: true},
	})
	if err != nil {
		return err
	}
	b.stores = append(b.stores, store)
	config := raft.DefaultConfig()
	config.LocalID, config.Logger = id, hclog.NewNullLogger()
	snapshots := raft.NewInmemSnapshotStore()
	if err := raft.BootstrapCluster(config, store, store, snapshots, transport, configuration); err != nil {
		return err
	}
	member, err := raft.NewRaft(config, idle{}, store, store, snapshots, transport)
	if err != nil {
		return err
	}
	b.members = append(b.members, member)
	return nil
}

func (b *BareRaft) awaitLeader(limit time.Duration) error {
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		for _, member := range b.members {
			if member.State() == raft.Leader {
				b.leader = member
				return nil
			}
		}
	}
	return fmt.Errorf("bare raft has no leader after %s", limit)
}

// Propose commits one command and returns how long that took.
func (b *BareRaft) Propose() (time.Duration, error) {
	begun := time.Now()
	err := b.leader.Apply(b.command, 0).Error()
	return time.Since(begun), err
}

// Close stops all members.
func (b *BareRaft) Close() error {
	var errs []error
	for _, member := range b.members {
		errs = append(errs, member.Shutdown().Error())
	}
	for _, transport := range b.trans {
		errs = append(errs, transport.Close())
	}
	for _, store := range b.stores {
		errs = append(errs, store.Close())
	}
	return errors.Join(errs...)
}

// idle is a state machine that does nothing.
type idle struct{}

func (idle) Apply(*raft.Log) any                  { return nil }
func (idle) Restore(from io.ReadCloser) error     { return from.Close() }
func (idle) Persist(sink raft.SnapshotSink) error { return sink.Close() }
func (idle) Release()                             {}

func (idle) Snapshot() (raft.FSMSnapshot, error) { return idle{}, nil }

// wire carries Raft over loopback, under TLS if dialing is set.
type wire struct {
	net.Listener
	dialing *tls.Config
}

func (w wire) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: timeout}
	if w.dialing == nil {
		return dialer.Dial("tcp", string(address))
	}
	return tls.DialWithDialer(dialer, "tcp", string(address), w.dialing)
}

const localhost = "127.0.0.1"

func listenPlain() (raft.StreamLayer, error) {
	listener, err := net.Listen("tcp", localhost+":0")
	return wire{Listener: listener}, err
}

func listenSecure(files pki.Files) (raft.StreamLayer, error) {
	serving, err := pki.ServerConfig(files, tls.RequireAndVerifyClientCert)
	if err != nil {
		return nil, err
	}
	dialing, err := pki.ClientConfig(files, pki.RolePeer)
	if err != nil {
		return nil, err
	}
	listener, err := tls.Listen("tcp", localhost+":0", serving)
	return wire{Listener: listener, dialing: dialing}, err
}

// peerFiles makes an authority and a peer's certificate for loopback.
func peerFiles(dir string) (pki.Files, error) {
	files := pki.Files{CA: filepath.Join(dir, "ca.pem"), Certificate: filepath.Join(dir, "peer.pem"), Key: filepath.Join(dir, "peer.key")}
	now := time.Now()
	authority, err := pki.NewAuthority("bench", now)
	if err != nil {
		return files, err
	}
	request, key, err := pki.NewRequest("bare")
	if err != nil {
		return files, err
	}
	identity := pki.Identity{Role: pki.RolePeer, ID: "bare", Name: "bare", ClusterID: "bench"}
	certificate, err := authority.Sign(request, identity, []string{localhost}, now, 24*time.Hour)
	if err != nil {
		return files, err
	}
	return files, errors.Join(
		os.MkdirAll(dir, 0o700),
		os.WriteFile(files.CA, authority.CertificatePEM(), 0o600),
		os.WriteFile(files.Certificate, certificate, 0o600),
		os.WriteFile(files.Key, key, 0o600),
	)
}
