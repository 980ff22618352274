package statusfiles

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
)

// serve has a service pass on a folder's files, until what it gives is called.
func serve(t *testing.T, folder, socket string, admits ...uint32) (end func()) {
	t.Helper()
	return start(t, &Service{Folder: folder, Admits: admits}, socket)
}

// hidden is a source whose files the reader may not read itself.
func hidden(t *testing.T, folder string) Source {
	return Source{Folder: filepath.Join(folder, "nothing"), Socket: filepath.Join(t.TempDir(), "socket")}
}

func TestTheServicePassesOnWhatIsThereAndWhatChanges(t *testing.T) {
	folder := t.TempDir()
	rewrite(t, folder, "before.xml")
	from := hidden(t, folder)
	end := serve(t, folder, from.Socket)
	defer func() { end() }()
	h := hear(t)
	h.answer = func(name string) string { return "<domain>" + name + "</domain>" }
	h.follow(from)
	if first := next(t, h.files); first != (File{Name: "before", Text: "<domstatus/>", Found: true}) {
		t.Errorf("what is there is told as %+v", first)
	}
	const text = "<domstatus a='\"&quot;\u00fc\n'/>"
	write(t, folder, "web.xml", text)
	h.await(File{Name: "web", Text: text})
	if changed := next(t, h.changed); changed != "web" {
		t.Errorf("%s has changed, and it was not", changed)
	}
	remove(t, folder, "web.xml")
	h.await(File{Name: "web"})
	write(t, folder, "large.xml", strings.Repeat("x", largest+1))
	if next(t, h.asked) != "large" {
		t.Error("what is too large is not asked for")
	}
	h.await(File{Name: "large", Text: "<domain>large</domain>"})
	remove(t, folder, "large.xml")
	h.await(File{Name: "large"})
	// The service ends, and comes again.
	time.Sleep(briefly)
	end()
	next(t, h.missed)
	rewrite(t, folder, "late.xml")
	end = serve(t, folder, from.Socket)
	h.await(File{Name: "late", Text: "<domstatus/>", Found: true})
}

// The gap that the service is for: a guest is changed and ends, and libvirt knows nothing more of it when it is asked. How short a time its
// file must be there depends on this machine.
func TestTheLastWordsOfAGuestOutliveIt(t *testing.T) {
	folder := t.TempDir()
	from := hidden(t, folder)
	defer serve(t, folder, from.Socket)()
	h := hear(t)
	h.follow(from)
	rewrite(t, folder, "ready.xml")
	for next(t, h.files).Name != "ready" {
	}
	for pause := 100 * time.Microsecond; ; pause *= 2 {
		name := fmt.Sprint("web-", pause)
		rewrite(t, folder, name+".xml")
		time.Sleep(pause)
		remove(t, folder, name+".xml")
		heard := false
		for file := (File{Name: name, Text: "unheard"}); file != (File{Name: name}); {
			file = next(t, h.files)
			heard = heard || file == File{Name: name, Text: "<domstatus/>"}
		}
		if heard {
			t.Logf("a file that is there for %v is heard", pause)
			return
		}
		if pause > 10*time.Second {
			t.Fatal("what a guest ran with last is not heard")
		}
	}
}

// A reader that never reads has a bound, and the others are told all the same; so they are of any number of files.
func TestAReaderThatNeverReadsIsInNobodysWay(t *testing.T) {
	folder := t.TempDir()
	from := hidden(t, folder)
	const guests = 2000
	text := strings.Repeat("x", 1000)
	for i := range guests {
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("web-%d.xml", i)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	defer serve(t, folder, from.Socket)()
	slow, err := net.Dial("unix", from.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	h := hear(t)
	h.follow(from)
	for told := map[string]bool{}; len(told) < guests; {
		file := next(t, h.files)
		if !file.Found || file.Text != text {
			t.Fatalf("it tells %s with %d bytes, found %t", file.Name, len(file.Text), file.Found)
		}
		told[file.Name] = true
	}
	write(t, folder, "web-0.xml", "new")
	h.await(File{Name: "web-0", Text: "new"})
}

func TestTheServiceAdmitsTheAgentAlone(t *testing.T) {
	folder, socket := t.TempDir(), filepath.Join(t.TempDir(), "socket")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	other := &Service{Folder: folder, Admits: []uint32{uint32(os.Geteuid()) + 1}, Log: hclog.NewNullLogger()}
	go func() { ended <- other.Serve(ctx, listener) }()
	if err := Passes(t.Context(), socket); err == nil {
		t.Error("it lets another account in")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	from := hidden(t, folder)
	defer serve(t, folder, from.Socket)()
	if err := Passes(t.Context(), from.Socket); err != nil {
		t.Error(err)
	}
	if err := Passes(t.Context(), socket+"-none"); err == nil {
		t.Error("what is not there passes something on")
	}
	var held []net.Conn
	for len(held) < mostReaders {
		conn, err := net.Dial("unix", from.Socket)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Read(make([]byte, 1)); err != nil { // Passes may not have gone yet
			continue
		}
		held = append(held, conn)
	}
	if err := Passes(t.Context(), from.Socket); err == nil {
		t.Error("it has any number of readers")
	}
	// Who speaks is not one of ours.
	if _, err := held[0].Write([]byte("GET /")); err != nil {
		t.Fatal(err)
	}
	for {
		if err := Passes(t.Context(), from.Socket); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// An agent may stand still for longer than it waits for the service. What it was told meanwhile is not lost.
func TestAnAgentThatStoodStillHearsWhatWasSaid(t *testing.T) {
	folder := t.TempDir()
	rewrite(t, folder, "web.xml")
	from := hidden(t, folder)
	defer serve(t, folder, from.Socket)()
	conn, err := net.Dial("unix", from.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	passed := newPassedOn(conn)
	for _, want := range []string{kindBegin, kindThere} {
		if is, err := passed.next(-time.Second); err != nil || is.Kind != want {
			t.Errorf("it hears %+v, %v, want %s", is, err, want)
		}
	}
}

// libvirt's folder comes with libvirt: a reader waits for it with the service.
func TestTheServiceWaitsForTheFolder(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "qemu")
	from := hidden(t, folder)
	defer serve(t, folder, from.Socket)()
	h := hear(t)
	h.follow(from)
	if err := Passes(t.Context(), from.Socket); err != nil {
		t.Error(err)
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	rewrite(t, folder, "web.xml")
	for next(t, h.files).Name != "web" {
	}
}
