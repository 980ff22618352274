package hostile

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"connectrpc.com/connect"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// asker is this test's own program under a name by which it asks all listeners of coordinators with a certificate, and prints the answers.
const asker = "/var/tmp/asker"

// answers is what one coordinator's listeners say to a certificate: in, removed (a session without orders), or why not.
type answers struct{ API, Session, Raft string }

const (
	in      = "in"
	removed = "removed"
)

// asked is how long a listener has to answer. Nothing goes by it but whether the port for Raft goes on waiting for what this one says.
const asked = 20 * time.Second

// ask asks the coordinators at these addresses with the certificate NAME.pem in a folder.
func ask(folder, name string, addresses []string) error {
	files := pki.Files{
		CA: filepath.Join(folder, "ca.pem"), Certificate: filepath.Join(folder, name+".pem"), Key: filepath.Join(folder, name+".key"),
	}
	own, err := pki.LoadPair(files)
	if err != nil {
		return err
	}
	// Whatever the certificate is for, it is shown to each listener, and whatever server is met is believed: it is asked what that believes.
	secure, err := pki.ClientConfig(files, pki.RolePeer)
	if err != nil {
		return err
	}
	secure.InsecureSkipVerify, secure.VerifyConnection = true, nil
	all := map[string]answers{}
	for _, address := range addresses {
		all[address] = answers{callAPI(secure, address), openSession(secure, address, own.Identity), knock(secure, address)}
	}
	return json.NewEncoder(os.Stdout).Encode(all)
}

func callAPI(secure *tls.Config, address string) string {
	ctx, cancel := context.WithTimeout(context.Background(), asked)
	defer cancel()
	_, err := berthv1connect.NewBerthServiceClient(rpc.NewHTTPClient(secure), "https://"+address+":7420").
		Status(ctx, connect.NewRequest(&berthv1.StatusRequest{}))
	return word(err)
}

func openSession(secure *tls.Config, address string, who pki.Identity) string {
	ctx, cancel := context.WithTimeout(context.Background(), asked)
	defer cancel()
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // under another one the node would be held for being two machines
	stream := berthv1connect.NewAgentServiceClient(rpc.NewHTTPClient(secure), "https://"+address+":7421").Session(ctx)
	_ = stream.Send(&berthv1.SessionRequest{Sequence: 1, Message: &berthv1.SessionRequest_Hello{Hello: &berthv1.Hello{
		NodeId: who.ID, ClusterId: who.ClusterID, Incarnation: fmt.Sprint(strings.TrimSpace(string(boot)), "/", time.Now().UnixNano()),
	}}}) // the answer says why not
	answer, err := stream.Receive()
	switch {
	case err != nil:
		return word(err)
	case answer.GetWelcome().GetRemoved():
		return removed
	case answer.GetWelcome() != nil:
		return in
	default:
		return fmt.Sprint(answer) // it is sent to the leader
	}
}

func knock(secure *tls.Config, address string) string {
	own := secure.Clone()
	own.NextProtos = []string{"berth-raft"}
	dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: asked}, Config: own}
	conn, err := dialer.DialContext(context.Background(), "tcp", address+":7422")
	if err != nil {
		return word(err)
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(3 * time.Second)) // a TCP connection takes one
	var timeout net.Error
	if _, err = conn.Read(make([]byte, 1)); errors.As(err, &timeout) && timeout.Timeout() {
		return in
	}
	return word(err)
}

func word(err error) string {
	if err == nil {
		return in
	}
	return err.Error()
}
