package statusfiles

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"
)

// libvirt writes a new file beside the old one and renames it.
func rewrite(t *testing.T, folder, name string) { t.Helper(); write(t, folder, name, "<domstatus/>") }

func write(t *testing.T, folder, name, text string) {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, folder, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(folder, name)); err != nil {
		t.Fatal(err)
	}
}

// heard is what a Teller was told.
type heard struct {
	t                      *testing.T
	files                  chan File
	changed, asked, missed chan string
	said                   chan string // of those that have changed
	answer                 func(name string) string
}

func hear(t *testing.T) *heard {
	return &heard{
		t: t, files: make(chan File, 1000), changed: make(chan string, 1000), asked: make(chan string, 1000), missed: make(chan string, 1000),
		said: make(chan string, 1000), answer: func(string) string { return "" },
	}
}

func (h *heard) teller() Teller {
	return Teller{
		Wrote: func(file File) { h.files <- file }, Changed: func(name, said string) { h.changed <- name; h.said <- said },
		Ask:    func(name string) string { h.asked <- name; return h.answer(name) },
		Missed: func() { h.missed <- "" },
	}
}

// next waits for what was told next.
func next[T any](t *testing.T, told <-chan T) (one T) {
	t.Helper()
	select {
	case one = <-told:
	case <-time.After(time.Minute):
		t.Fatal("nothing is told")
	}
	return one
}

// await waits until a file is told.
func (h *heard) await(want File) {
	h.t.Helper()
	for next(h.t, h.files) != want {
	}
}

// follow follows a source until the test ends, or until what it gives is called.
func (h *heard) follow(from Source) (end func()) {
	ctx, cancel := context.WithCancel(h.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		Follow(ctx, from, h.teller(), hclog.NewNullLogger())
	}()
	end = func() { cancel(); <-ended }
	h.t.Cleanup(end)
	return end
}

func TestTheFolderTellsWhichGuestsHaveChanged(t *testing.T) {
	folder := t.TempDir()
	rewrite(t, folder, "before.xml")
	h := hear(t)
	h.follow(Source{Folder: folder})
	if first := next(t, h.files); first != (File{Name: "before", Text: "<domstatus/>", Found: true}) {
		t.Errorf("what is there is told as %+v", first)
	}
	rewrite(t, folder, "web.1.xml")
	rewrite(t, folder, "web.1.xml")
	rewrite(t, folder, "web.1.pid")
	names := map[string]int{}
	for names["web.1"] == 0 {
		names[next(t, h.changed)]++
	}
	time.Sleep(3 * settle)
	for len(h.changed) > 0 {
		names[<-h.changed]++
	}
	if names["web.1"] != 1 || len(names) > 1 {
		t.Errorf("it tells %v", names)
	}
	remove(t, folder, "web.1.xml")
	h.await(File{Name: "web.1"})
}

// libvirt may take seconds to answer about one guest. What the files of the others say is read all the same.
func TestWhatFilesSayIsReadWhileLibvirtIsAsked(t *testing.T) {
	folder := t.TempDir()
	h := hear(t)
	tell, asked, answers := h.teller(), make(chan string, 100), make(chan struct{})
	tell.Changed = func(name, _ string) {
		asked <- name
		<-answers
	}
	rewrite(t, folder, "before.xml")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		Follow(ctx, Source{Folder: folder}, tell, hclog.NewNullLogger())
	}()
	next(t, h.files)
	rewrite(t, folder, "slow.xml")
	next(t, asked)
	rewrite(t, folder, "web.xml")
	h.await(File{Name: "web", Text: "<domstatus/>"})
	close(answers)
	for next(t, asked) != "web" {
	}
	cancel()
	<-ended
}

// libvirt's folder comes with libvirt, and may be made anew.
func TestAFolderThatComesLaterIsFollowed(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "qemu")
	h := hear(t)
	h.follow(Source{Folder: folder, again: 50 * time.Millisecond})
	time.Sleep(10 * time.Millisecond)
	for range 2 {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		rewrite(t, folder, "web.xml")
		h.await(File{Name: "web", Text: "<domstatus/>", Found: true})
		if err := os.RemoveAll(folder); err != nil {
			t.Fatal(err)
		}
	}
}

// asNobody does something in a thread that reads files as nobody. The thread ends with the goroutine that it is for.
func asNobody(t *testing.T, do func()) {
	ended := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		err := unix.Setfsuid(65534)
		if err == nil {
			do()
		}
		ended <- err
	}()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// Where the service is missing, what the files would have said is asked libvirt for at once.
func TestLibvirtIsAskedWhereItsFilesMayNotBeRead(t *testing.T) {
	folder := t.TempDir()
	if err := os.Chmod(filepath.Dir(folder), 0o755); err != nil {
		t.Fatal(err)
	}
	rewrite(t, folder, "before.xml")
	h := hear(t)
	h.answer = func(name string) string { return "<domain>" + name + "</domain>" }
	ctx, cancel := context.WithCancel(t.Context())
	asNobody(t, func() {
		Follow(ctx, Source{Folder: folder, Socket: filepath.Join(folder, "none")}, h.teller(), hclog.NewNullLogger())
	})
	t.Cleanup(cancel)
	if first := next(t, h.files); first != (File{Name: "before", Text: "<domain>before</domain>", Found: true}) {
		t.Errorf("what is there is told as %+v", first)
	}
	rewrite(t, folder, "web.xml")
	h.await(File{Name: "web", Text: "<domain>web</domain>"})
	for next(t, h.changed) != "web" {
		next(t, h.said)
	}
	if said := next(t, h.said); said != "<domain>web</domain>" {
		t.Errorf("what libvirt said is told as %q", said)
	}
}

// To read a guest's document takes its time, and of each change it is read once: also when it is written again while libvirt answers, the
// last answer counts.
func TestLibvirtIsAskedOnceOfAChange(t *testing.T) {
	h := hear(t)
	answers := make(chan string)
	h.answer = func(string) string { return <-answers }
	items := make(chan item)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = watch(ctx, func(ctx context.Context, deliver func(item)) error {
			for {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case one := <-items:
					deliver(one)
				}
			}
		}, h.teller())
	}()
	web := item{File: File{Name: "web"}, is: unreadable, changed: true}
	items <- web
	next(t, h.asked)
	for range 3 { // one question about all three
		items <- web
	}
	items <- item{File: File{Name: "other", Text: "read"}, is: read}
	h.await(File{Name: "other", Text: "read"}) // so all before it are taken in
	answers <- "old"
	next(t, h.asked)
	answers <- "new"
	for next(t, h.said) != "new" {
	}
	items <- item{File: File{Name: "db", Found: true}, is: unreadable}
	next(t, h.asked)
	answers <- "db"
	h.await(File{Name: "db", Text: "db", Found: true})
	time.Sleep(3 * settle)
	for len(h.changed) > 0 {
		if name := <-h.changed; name != "web" {
			t.Errorf("%s has not changed", name)
		}
	}
	if len(h.asked) > 0 || len(h.said) > 0 {
		t.Errorf("it is asked again %d times, and told %d times", len(h.asked), len(h.said))
	}
	cancel()
	<-ended
}

// What is in the folder may be anything: nothing but files is opened, and none by way of a link.
func TestNothingButFilesIsRead(t *testing.T) {
	files := t.TempDir()
	secret := filepath.Join(t.TempDir(), "secret")
	for _, err := range []error{
		os.WriteFile(secret, []byte("secret"), 0o600),
		os.Symlink(secret, filepath.Join(files, "link.xml")),
		os.Symlink("web.xml", filepath.Join(files, "beside.xml")),
		unix.Mkfifo(filepath.Join(files, "pipe.xml"), 0o600),
		os.Mkdir(filepath.Join(files, "folder.xml"), 0o700),
		unix.Mknod(filepath.Join(files, "device.xml"), unix.S_IFCHR|0o600, 0x0103),
		os.WriteFile(filepath.Join(files, ".xml"), []byte("nobody"), 0o600),
		os.WriteFile(filepath.Join(files, "empty.xml"), nil, 0o600),
		os.WriteFile(filepath.Join(files, "large.xml"), nil, 0o600),
		os.Truncate(filepath.Join(files, "large.xml"), largest+1),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	write(t, files, "web.xml", "<domstatus/>")
	here := folder(files)
	for name, want := range map[string]condition{
		"link": noFile, "beside": noFile, "pipe": noFile, "folder": noFile, "device": noFile, "empty": gone, "none": gone,
		"large": unreadable, "web": read,
	} {
		if is := here.read(name); is.is != want || (is.Text != "") != (want == read) {
			t.Errorf("%s is %d with %d bytes, want %d", name, is.is, len(is.Text), want)
		}
	}
	for file, want := range map[string]string{"web.xml": "web", "web.1.xml": "web.1", ".xml": "", "web.xml.new": "", "x/../y.xml": ""} {
		if name, is := guestOf(file); is != (want != "") || is && name != want {
			t.Errorf("%s is of guest %q, %t", file, name, is)
		}
	}
}

// What a reader was not told yet keeps little: of a guest that goes on the newest file, and of one that has ended its last.
func TestAQueueKeepsWhatAGuestRanWithLast(t *testing.T) {
	due := &queue{wake: make(chan struct{}, 1)}
	file := func(name, text string, is condition) item {
		return item{File: File{Name: name, Text: text}, is: is, changed: true}
	}
	due.put(item{File: File{Name: "db", Found: true}, is: there})
	for i := range 3 {
		due.put(file("web", fmt.Sprint("first ", i), read))
	}
	due.put(file("db", "changed", read))
	due.put(file("web", "", gone))
	due.put(file("web", "second", read))
	var told string
	for {
		one, is, err := due.take()
		if err != nil {
			t.Fatal(err)
		}
		if !is {
			break
		}
		told += fmt.Sprintf("%s %q %t\n", one.Name, one.Text, one.Found)
	}
	if want := "db \"changed\" true\nweb \"first 2\" false\nweb \"\" false\nweb \"second\" false\n"; told != want {
		t.Errorf("it is told\n%s\nwant\n%s", told, want)
	}
	if due.bytes != 0 || len(due.last) != 0 {
		t.Errorf("it keeps %d bytes, %d guests", due.bytes, len(due.last))
	}
	text := strings.Repeat("x", largest)
	for i := 0; due.err == nil; i++ {
		if i > 2*mostBytes/largest {
			t.Fatal("it keeps anything")
		}
		due.put(file(fmt.Sprint(i), text, read))
	}
	if _, _, err := due.take(); !errors.Is(err, errSlow) {
		t.Errorf("a slow reader is told %v", err)
	}
}
