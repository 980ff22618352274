package console

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/shared/units"
)

//go:embed templates static
var files embed.FS

// page is what one template is filled with.
type page struct {
	name string // of the template

	Title   string
	Here    string // which entry of the navigation it belongs to
	Command string // that tells the same
	Refresh int    // seconds after which a browser without scripts reads it again; 0: never, because a form may be half filled in
	Live    bool   // it has a feed, which a browser with scripts follows
	Past    *past  // as of when it tells; nil: now
	Body    any

	Visitor Visitor
	At      time.Time
	Content any // what the template named content has made of all that
}

// unknown is said where there is no figure. It is never 0.
const unknown = "unknown"

var pages = parse()

func parse() map[string]*template.Template {
	all := make(map[string]*template.Template)
	functions := template.FuncMap{
		"bytes": size, "moment": moment, "word": word, "age": age, "first": func(texts ...string) string { return cmp.Or(texts...) },
		"about": about, "broken": broken, "wants": wants, "token": rand.Text, "figure": units.Figure,
		"join":  func(texts []string) string { return strings.Join(texts, ", ") },
		"until": func(t time.Time) string { return t.UTC().Format("15:04 UTC") },
	}
	frame := template.Must(template.New("frame").Funcs(functions).ParseFS(files, "templates/frame.tmpl"))
	found, _ := fs.Glob(files, "templates/*.tmpl") // it fails only for a bad pattern
	for _, file := range found {
		if name := strings.TrimSuffix(path.Base(file), ".tmpl"); name != "frame" {
			all[name] = template.Must(template.Must(frame.Clone()).ParseFS(files, file))
		}
	}
	return all
}

// write sends a page. It is made before it is begun, so that a fault is told as one.
func (c *Console) write(w http.ResponseWriter, r *http.Request, code int, visitor Visitor, p *page) {
	p.Visitor, p.At = visitor, p.made(c.Now())
	content, err := p.content()
	var made bytes.Buffer
	if err == nil {
		p.Content = escaped(content)
		err = pages[p.name].ExecuteTemplate(&made, "frame", p)
	}
	if err != nil {
		c.Log.Error("a page of the console could not be made", "page", p.name, "error", err)
		http.Error(w, "this page could not be made: the coordinator's log says why", http.StatusInternalServerError)
		return
	}
	if p.Live {
		c.feeds.expect(feedKey(visitor, r), p, content)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	send(w, r, code, made.Bytes())
}

// content is what a page shows, without what is around it on every page.
func (p *page) content() ([]byte, error) {
	var made bytes.Buffer
	err := pages[p.name].ExecuteTemplate(&made, "content", p)
	return made.Bytes(), err
}

// size prints bytes.
func size(n int64) string { return units.Bytes(n).String() }

// moment prints a time.
func moment(t *timestamppb.Timestamp) string {
	if t == nil {
		return unknown
	}
	return t.AsTime().UTC().Format("2006-01-02 15:04:05")
}

// word is the name of a value as people read it: running of VM_STATE_RUNNING.
func word(value protoreflect.Enum) string {
	descriptor := value.Descriptor()
	known := descriptor.Values().ByNumber(value.Number())
	if known == nil || value.Number() == 0 {
		return unknown
	}
	zero := string(descriptor.Values().ByNumber(0).Name())
	prefix := strings.TrimSuffix(zero, "UNSPECIFIED")
	return strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(string(known.Name()), prefix), "_", " "))
}

// age prints how old a figure is.
func age(seconds *float64) string {
	if seconds == nil {
		return unknown
	}
	return lasting(time.Duration(*seconds * float64(time.Second)))
}

func lasting(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	default:
		return fmt.Sprintf("%d d", int(d.Hours()/24))
	}
}

// quoted is a name as a shell takes it.
func quoted(name string) string {
	plain := func(r rune) bool {
		return r < 128 && (r == '-' || r == '_' || r == '.' || r == '/' || r == ':' ||
			'0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z')
	}
	if name != "" && !strings.ContainsFunc(name, func(r rune) bool { return !plain(r) }) {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}
