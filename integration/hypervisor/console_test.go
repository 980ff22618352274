package hypervisor

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"berth/agent/hypervisor"
	"berth/integration/lab"
	"berth/shared/domxml"
)

// What the guest says comes through, what is typed gets to it, and somebody else can take over.
func TestTheConsoleOfAGuest(t *testing.T) {
	_, bench := raise(t)
	hv := bench.Source.Hypervisor
	id := domxml.Identity{
		UUID: "6e0f5d0a-3b51-4c8e-9d27-5d8f8a3f0002", Name: "talker", Mark: domxml.Mark{Epoch: 1, Operation: "op-1", Node: "node1"},
	}
	xml, err := domxml.Render(domxml.Spec{MemoryBytes: 128 * mebibyte, VCPUs: 1, Kernel: lab.Kernel, Initrd: lab.Initrd, Cmdline: lab.Cmdline},
		id, domxml.Machine{DomainType: "qemu", Arch: "x86_64", Type: "pc"})
	if err != nil {
		t.Fatal(err)
	}
	if err := hv.Start(t.Context(), xml); err != nil {
		t.Fatal(err)
	}
	first := join(t, hv, id.UUID, false)
	await(t, first, "tick")
	if _, err := first.Write([]byte("knock knock\n")); err != nil {
		t.Fatal(err)
	}
	await(t, first, "knock knock") // the guest's terminal says again what is typed
	if _, err := hv.OpenConsole(t.Context(), id.UUID, false); !errors.Is(err, hypervisor.ErrBusy) {
		t.Errorf("a second one: %v", err)
	}
	second := join(t, hv, id.UUID, true)
	if _, err := io.Copy(io.Discard, first); err != nil {
		t.Errorf("the one that was cut off ends with %v", err)
	}
	await(t, second, "tick")
	if err := errors.Join(first.Close(), second.Close()); err != nil {
		t.Error(err)
	}
	third := join(t, hv, id.UUID, false)
	if err := hv.Destroy(t.Context(), id.UUID, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, third); err != nil {
		t.Errorf("without its guest a console ends with %v", err)
	}
	if err := third.Close(); err != nil {
		t.Error(err)
	}
}

func join(t *testing.T, hv hypervisor.Hypervisor, uuid string, force bool) io.ReadWriteCloser {
	t.Helper()
	c, err := hv.OpenConsole(t.Context(), uuid, force)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// await reads lines until one has the word.
func await(t *testing.T, console io.ReadWriteCloser, word string) {
	t.Helper()
	limit := time.AfterFunc(time.Minute, func() { _ = console.Close() })
	defer limit.Stop()
	for reader := bufio.NewReader(console); ; {
		line, err := reader.ReadString('\n')
		if strings.Contains(line, word) {
			return
		}
		if err != nil {
			t.Fatalf("no line with %q: %v", word, err)
		}
	}
}
