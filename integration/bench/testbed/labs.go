package testbed

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/sys/unix"

	"berth/coordinator/cli/clientconfig"
	"berth/integration/lab"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
)

// RaisedLab is a lab and the API of its leader without the start of a process for every call.
type RaisedLab struct {
	*lab.Lab
	API berthv1connect.BerthServiceClient
}

// RaiseLab raises a lab of the programs in a folder and connects to the API of its leader from the operator's machine.
func RaiseLab(ctx context.Context, programs string, options lab.Options) (*RaisedLab, error) {
	options.Binaries = programs
	l, err := lab.Up(ctx, options)
	if err != nil {
		return nil, err
	}
	r := &RaisedLab{Lab: l}
	if err := r.connect(ctx); err != nil {
		return nil, errors.Join(err, l.Down())
	}
	return r, nil
}

func (r *RaisedLab) connect(ctx context.Context) error {
	lead, err := r.Leader(ctx)
	if err != nil {
		return err
	}
	files, err := r.operatorFiles()
	if err != nil {
		return err
	}
	secure, err := pki.ClientConfig(files, pki.RolePeer)
	if err != nil {
		return err
	}
	// A process that stays on the operator's machine is the handle to its network.
	if err := r.Operator.Start(ctx, anchor, "sleep", "infinity"); err != nil {
		return err
	}
	pid := r.Operator.Pid(anchor)
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	client := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return DialFrom(ctx, pid, network, address)
		},
		TLSClientConfig: secure, Protocols: protocols,
	}}
	r.API = berthv1connect.NewBerthServiceClient(client, "https://"+net.JoinHostPort(lead.Address, "7420"))
	return nil
}

const anchor = "anchor"

// operatorFiles are the certificates of the operator's machine, as seen from outside.
func (r *RaisedLab) operatorFiles() (pki.Files, error) {
	path := r.Operator.Path(clientconfig.SystemPath)
	file, err := clientconfig.Load(path)
	if err != nil {
		return pki.Files{}, err
	}
	current, _, err := file.Context("", clientconfig.SystemPath)
	if err != nil {
		return pki.Files{}, err
	}
	inside := current.Files()
	return pki.Files{
		CA: r.Operator.Path(inside.CA), Certificate: r.Operator.Path(inside.Certificate), Key: r.Operator.Path(inside.Key),
	}, nil
}

// DialFrom connects from the network of another process. A socket belongs to the network in which it was made, whatever
// becomes of the thread that made it.
func DialFrom(ctx context.Context, pid int, network, address string) (net.Conn, error) {
	there, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		return nil, err
	}
	defer there.Close()
	type dialled struct {
		conn net.Conn
		err  error
	}
	result := make(chan dialled, 1)
	go func() {
		// Never unlocked: a thread that has been elsewhere ends with its goroutine.
		runtime.LockOSThread()
		if err := unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
			result <- dialled{err: fmt.Errorf("enter the network of process %d: %w", pid, err)}
			return
		}
		// With an address for a host, all of the dialling happens on this thread.
		conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, network, address)
		result <- dialled{conn, err}
	}()
	d := <-result
	return d.conn, d.err
}

// timing is what `virsh -t` prints after each command.
var timing = regexp.MustCompile(`\(Time: ([0-9.]+) ms\)`)

// Virsh runs one command in a virsh that is connected already, and returns how long libvirt took for it: neither the
// start of the process nor the connection count.
func Virsh(ctx context.Context, host *lab.Host, command string) (time.Duration, error) {
	output, err := host.Exec(ctx, "virsh", "-c", "qemu:///system", "-t", "version; "+command)
	if err != nil {
		return 0, err
	}
	found := timing.FindAllStringSubmatch(output, -1)
	if len(found) != 2 {
		return 0, fmt.Errorf("virsh %s: want the times of two commands, got %q", command, output)
	}
	milliseconds, err := strconv.ParseFloat(found[1][1], 64)
	return time.Duration(milliseconds * float64(time.Millisecond)), err
}

// StartOn starts a VM on one node through the API and returns how long it took until it ran.
func (r *RaisedLab) StartOn(ctx context.Context, node, name string, spec *berthv1.VMSpec) (time.Duration, error) {
	request := &berthv1.StartVMRequest{Name: name, Node: node, RequestId: rand.Text(), Vm: &berthv1.NewVM{Spec: spec}}
	begun := time.Now()
	answer, err := Patiently(ctx, func() (*connect.Response[berthv1.StartVMResponse], error) {
		return r.API.StartVM(ctx, connect.NewRequest(request))
	})
	if err != nil {
		return 0, err
	}
	_, err = AwaitEnd(ctx, r.API, answer.Msg.GetOperation().GetId())
	return time.Since(begun), err
}

// RemoveVM powers a VM off and forgets it.
func (r *RaisedLab) RemoveVM(ctx context.Context, name string) error {
	stop := &berthv1.StopVMRequest{Vm: name, Force: true, RequestId: rand.Text()}
	answer, err := Patiently(ctx, func() (*connect.Response[berthv1.StopVMResponse], error) {
		return r.API.StopVM(ctx, connect.NewRequest(stop))
	})
	if err != nil {
		return err
	}
	if _, err := AwaitEnd(ctx, r.API, answer.Msg.GetOperation().GetId()); err != nil {
		return err
	}
	forget := &berthv1.DeleteVMRequest{Vm: name, RequestId: rand.Text()}
	_, err = Patiently(ctx, func() (*connect.Response[berthv1.DeleteVMResponse], error) {
		return r.API.DeleteVM(ctx, connect.NewRequest(forget))
	})
	return err
}

// TwinOf is the XML of a VM as Berth has made it, under another name and with no UUID and no place of its own.
func (r *RaisedLab) TwinOf(ctx context.Context, host *lab.Host, vm, twin string) (string, error) {
	xml, err := host.Virsh(ctx, "dumpxml", "--migratable", vm)
	if err != nil {
		return "", err
	}
	xml = regexp.MustCompile(`(?s)\s*<uuid>.*?</uuid>`).ReplaceAllString(xml, "")
	xml = regexp.MustCompile(`(?s)\s*<metadata>.*?</metadata>`).ReplaceAllString(xml, "")
	named := strings.Replace(xml, "<name>"+vm+"</name>", "<name>"+twin+"</name>", 1)
	if named == xml {
		return "", fmt.Errorf("the XML of %s does not name it: %s", vm, xml)
	}
	path := filepath.Join(lab.SharedDir, twin+".xml")
	return path, os.WriteFile(filepath.Join(r.Dir, "shared", twin+".xml"), []byte(named), 0o644)
}
