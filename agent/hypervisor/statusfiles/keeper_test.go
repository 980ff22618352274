package statusfiles

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
)

// keepAll has a service keep a folder's files in another, and pass them on, until what it gives is called.
func keepAll(t *testing.T, folder, keep, socket string, pace time.Duration) (end func()) {
	t.Helper()
	return start(t, &Service{Folder: folder, Keep: keep, alive: pace, heard: pace}, socket)
}

// isKept waits until the last of a guest that runs is kept.
func isKept(t *testing.T, keep, name, text string) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		if is, err := unpacked(filepath.Join(keep, livePrefix+digest(name))); err == nil && is.Text == text {
			return
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("%s is not kept with %q", name, text)
		}
	}
}

// wantKept asks the service as an agent does that begins.
func wantKept(t *testing.T, socket string, want ...File) {
	t.Helper()
	if is, err := Kept(t.Context(), socket); err != nil || !slices.Equal(is, want) {
		t.Errorf("it has kept %+v, %v, want %+v", is, err, want)
	}
}

// A guest is changed and ends while no agent is there. What it ran with last waits for the next one, however often the service itself is
// started anew meanwhile.
func TestWhatAGuestRanWithLastWaitsForAnAgent(t *testing.T) {
	folder, keep := t.TempDir(), filepath.Join(t.TempDir(), "keep")
	socket := filepath.Join(t.TempDir(), "socket")
	write(t, folder, "runs.xml", "<runs/>")
	end := keepAll(t, folder, keep, socket, 0)
	write(t, folder, "web.xml", "<before/>")
	isKept(t, keep, "web", "<before/>")
	write(t, folder, "web.xml", "<after/>")
	isKept(t, keep, "web", "<after/>")
	isKept(t, keep, "runs", "<runs/>")
	wantKept(t, socket)
	remove(t, folder, "web.xml")
	web := File{Name: "web", Text: "<after/>", Ended: true}
	wantKept(t, socket, web)
	end()

	remove(t, folder, "runs.xml")
	end = keepAll(t, folder, keep, socket, 0)
	wantKept(t, socket, web, File{Name: "runs", Text: "<runs/>", Ended: true})
	// One that runs again, and ends again, is told twice: in this order.
	write(t, folder, "web.xml", "<again/>")
	isKept(t, keep, "web", "<again/>")
	remove(t, folder, "web.xml")
	wantKept(t, socket, web, File{Name: "runs", Text: "<runs/>", Ended: true}, File{Name: "web", Text: "<again/>", Ended: true})
	// Who follows the files hears of them too.
	h := hear(t)
	h.follow(Source{Folder: filepath.Join(folder, "nothing"), Socket: socket})
	if first := next(t, h.files); first != web {
		t.Errorf("what was kept is told as %+v", first)
	}
	end()
	if is, err := Kept(t.Context(), filepath.Join(folder, "nothing")); err != nil || len(is) > 0 {
		t.Errorf("a service that is not there has kept %+v, %v", is, err)
	}
}

// What is not known any more is not told as the last: the guest has a file that cannot be read.
func TestWhatMayHaveChangedIsNotKept(t *testing.T) {
	folder, keep := t.TempDir(), t.TempDir()
	socket := filepath.Join(t.TempDir(), "socket")
	defer keepAll(t, folder, keep, socket, 0)()
	write(t, folder, "web.xml", "<before/>")
	isKept(t, keep, "web", "<before/>")
	write(t, folder, "web.xml", strings.Repeat("x", largest+1))
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(filepath.Join(keep, livePrefix+digest("web"))); os.IsNotExist(err) {
			break
		}
		if time.Since(began) > time.Minute {
			t.Fatal("an older one is kept")
		}
	}
	remove(t, folder, "web.xml")
	wantKept(t, socket)
}

// Who has read all for a while has passed it on: an agent that begins after that is not told of ends that others know. Who does not read
// has not.
func TestWhatAnAgentHasHeardIsNotKept(t *testing.T) {
	folder, keep := t.TempDir(), t.TempDir()
	socket := filepath.Join(t.TempDir(), "socket")
	defer keepAll(t, folder, keep, socket, time.Millisecond)()
	write(t, folder, "web.xml", "<web/>")
	isKept(t, keep, "web", "<web/>")
	remove(t, folder, "web.xml")
	slow, err := net.Dial("unix", socket) // which ends the guest for the service, if it has not seen that yet
	if err != nil {
		t.Fatal(err)
	}
	endings := func() int {
		entries, err := os.ReadDir(keep)
		if err != nil {
			t.Fatal(err)
		}
		return len(slices.DeleteFunc(entries, func(e os.DirEntry) bool { return !strings.HasPrefix(e.Name(), endedPrefix) }))
	}
	await := func(want int) {
		t.Helper()
		for began := time.Now(); endings() != want; time.Sleep(time.Millisecond) {
			if time.Since(began) > time.Minute {
				t.Fatalf("it keeps %d, want %d", endings(), want)
			}
		}
	}
	await(1)
	time.Sleep(50 * time.Millisecond) // in which it could be forgotten many times
	await(1)
	_ = slow.Close()
	h := hear(t)
	h.follow(Source{Folder: filepath.Join(folder, "nothing"), Socket: socket})
	h.await(File{Name: "web", Text: "<web/>", Ended: true})
	await(0)
}

func TestWhatIsKeptHasBounds(t *testing.T) {
	k := &keeper{from: folder(t.TempDir()), folder: t.TempDir(), log: hclog.NewNullLogger()}
	if err := k.begin(); err != nil {
		t.Fatal(err)
	}
	noon := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	ends := func(at time.Time, is File) {
		t.Helper()
		if err := k.write(is); err != nil {
			t.Fatal(err)
		}
		if err := k.end(is.Name, at); err != nil {
			t.Fatal(err)
		}
	}
	first := func() (string, int) {
		t.Helper()
		paths, err := k.last()
		if err != nil {
			t.Fatal(err)
		}
		is, err := unpacked(paths[0])
		if err != nil {
			t.Fatal(err)
		}
		return is.Name, len(paths)
	}
	long := strings.Repeat("n", 250)
	ends(noon.Add(-keepFor), File{Name: "old"})
	ends(noon, File{Name: long, Text: "text"})
	if name, of := first(); name != "old" || of != 2 {
		t.Errorf("it begins with %s of %d", name, of)
	}
	ends(noon.Add(1), File{Name: "new"})
	if name, of := first(); name != long || of != 2 {
		t.Errorf("later it begins with %s of %d", name, of)
	}
	for i := range mostRuns {
		ends(noon.Add(time.Duration(i+2)), File{Name: fmt.Sprint("web-", i)})
	}
	if name, of := first(); name != "web-0" || of != mostRuns {
		t.Errorf("of many it begins with %s of %d", name, of)
	}
	noise := make([]byte, 3<<20) // that cannot be packed
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(noise)
	for i := range 3 {
		ends(noon.Add(time.Hour+time.Duration(i)), File{Name: fmt.Sprint("large-", i), Text: string(noise)})
	}
	if name, of := first(); name != "large-1" || of != 2 {
		t.Errorf("of large ones it begins with %s of %d", name, of)
	}
	for i := range 10 {
		if err := k.write(File{Name: fmt.Sprint("large-", i), Text: string(noise)}); err != nil {
			t.Fatal(err)
		}
	}
	if k.liveBytes > mostLive+4<<20 || len(k.live) < 5 {
		t.Errorf("%d bytes of %d guests that run are kept", k.liveBytes, len(k.live))
	}
	if err := k.write(File{Name: "large-0", Text: "small"}); err != nil || k.live["large-0"] > 1000 {
		t.Errorf("the newest of one that is kept is not: %d bytes, %v", k.live["large-0"], err)
	}
}

// A service that may not write keeps nothing, and passes on what it reads all the same.
func TestAServiceThatCannotKeepPassesOn(t *testing.T) {
	folder, socket := t.TempDir(), filepath.Join(t.TempDir(), "socket")
	file := filepath.Join(folder, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	defer keepAll(t, folder, filepath.Join(file, "keep"), socket, 0)()
	rewrite(t, folder, "web.xml")
	h := hear(t)
	h.follow(Source{Folder: filepath.Join(folder, "nothing"), Socket: socket})
	h.await(File{Name: "web", Text: "<domstatus/>", Found: true})
	wantKept(t, socket)
}

// start has a service serve until what it gives is called.
func start(t *testing.T, service *Service, socket string) (end func()) {
	t.Helper()
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	service.Admits, service.Log = append(service.Admits, uint32(os.Geteuid())), hclog.NewNullLogger()
	go func() { ended <- service.Serve(ctx, listener) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		_ = listener.Close()
	}
}
