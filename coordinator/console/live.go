package console

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"
)

// livePath is where the feed of a page is: /live/vms is that of /vms.
const livePath = "/live"

// What feeds cost is bounded by what is looked at, and not by how many look: all who follow the same page get what was made once. A page is
// read again once a second at most; the more of them are followed, and the larger one is, the less often.
const (
	mostFollowers = 512                    // of all feeds: each has a connection open
	Pace          = time.Second            // from one look at a page to the next
	besides       = 100 * time.Millisecond // more for each page that is followed
	heavy         = 100 << 10              // bytes that are sent to one follower in a second
	working       = 10                     // of so much time, one part at most is spent on making a page
	mostPause     = 5 * time.Second        // for that reason: a machine may have been busy with something else
	writeLimit    = 10 * time.Second       // for one message to a browser
)

// feeds are the pages that browsers follow. The zero value is none.
type feeds struct {
	mu        sync.Mutex
	open      map[string]*feed
	followers int
	shown     map[string]shown // what was read a moment ago, and is about to be followed
}

// shown is a page as somebody has just read it.
type shown struct {
	at      time.Time
	says    string // as of when its content holds
	content []byte
}

// A browser follows what it has read within this time, and so many pages are kept for that.
const (
	soon      = 5 * time.Second
	mostShown = 32
)

// feedKey is what all who follow the same have in common.
func feedKey(of Visitor, r *http.Request) string {
	return fmt.Sprint(of.ReadOnly, " ", strings.TrimPrefix(r.URL.RequestURI(), livePath))
}

// expect keeps what a page shows until its reader follows it, so that it is not made once more for his feed.
func (f *feeds) expect(key string, p *page, content []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(f.shown, func(_ string, one shown) bool { return now.Sub(one.at) > soon })
	if f.shown == nil {
		f.shown = make(map[string]shown)
	}
	if len(f.shown) < mostShown {
		f.shown[key] = shown{now, p.At.Format(clock), content}
	}
}

// feed is one page, made again as long as somebody follows it. Every operator sees the same of it, apart from what may be done there.
type feed struct {
	show screen
	stop context.CancelFunc

	followers map[*visit]bool // guarded by feeds.mu, as whose one the page is read

	mu      sync.Mutex
	state   edition
	changed chan struct{} // closed when there is another edition
}

// edition is a page at one time.
type edition struct {
	version int          // of the content; 0: it was not read yet
	full    func() event // the content
	patch   event        // what makes this content of that of the version before
	brief   event        // as of when the content holds, or why it could not be read again
}

// message is what followers get. An edition that could not be made has a trouble only: what is shown stays.
type message struct {
	Content *string `json:"content,omitempty"`
	Patch   []hunk  `json:"patch,omitempty"` // of the content before
	At      string  `json:"at,omitempty"`
	Trouble string  `json:"trouble,omitempty"`
}

// follow lets a visitor follow a page until leave is called. False: too many do.
func (c *Console) follow(show screen, v *visit) (followed *feed, leave func(), taken bool) {
	key := feedKey(v.Visitor, v.request)
	c.feeds.mu.Lock()
	defer c.feeds.mu.Unlock()
	if c.feeds.followers >= mostFollowers {
		return nil, nil, false
	}
	c.feeds.followers++
	f := c.feeds.open[key]
	if f == nil {
		ctx, cancel := context.WithCancel(context.WithoutCancel(v.ctx))
		f = &feed{show: show, stop: cancel, followers: make(map[*visit]bool), changed: make(chan struct{})}
		if c.feeds.open == nil {
			c.feeds.open = make(map[string]*feed)
		}
		c.feeds.open[key] = f
		var last []byte
		if read := c.feeds.shown[key]; time.Since(read.at) <= soon {
			f.publish(read.content, &last, read.says, nil)
		}
		go c.run(ctx, f, last)
	}
	delete(c.feeds.shown, key)
	f.followers[v] = true
	return f, func() {
		c.feeds.mu.Lock()
		defer c.feeds.mu.Unlock()
		c.feeds.followers--
		if delete(f.followers, v); len(f.followers) == 0 {
			f.stop()
			delete(c.feeds.open, key)
		}
	}, true
}

// run makes a page again and again. The last content of it, if there is any, is published already.
func (c *Console) run(ctx context.Context, f *feed, last []byte) {
	for first := true; ; first = false {
		begun := time.Now()
		if !first || last == nil {
			content, at, err := c.edit(ctx, f)
			if ctx.Err() != nil {
				return
			}
			f.publish(content, &last, at, err)
		}
		took := time.Since(begun)
		c.feeds.mu.Lock()
		wait := max(Pace, besides*time.Duration(len(c.feeds.open)))
		c.feeds.mu.Unlock()
		wait = max(wait, time.Duration(len(last))*time.Second/heavy, min(working*took, mostPause))
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// edit makes the content of the page as one of its followers sees it.
func (c *Console) edit(ctx context.Context, f *feed) ([]byte, string, error) {
	c.feeds.mu.Lock()
	var as *visit
	for as = range f.followers {
		break
	}
	c.feeds.mu.Unlock()
	if as == nil {
		return nil, "", context.Canceled
	}
	ctx, cancel := context.WithTimeout(ctx, pageLimit)
	defer cancel()
	request := as.request.Clone(ctx)
	made, err := f.show(&visit{Visitor: as.Visitor, ctx: ctx, request: request, now: c.Now()})
	if err != nil {
		return nil, "", err
	}
	made.Visitor, made.At = as.Visitor, made.made(c.Now())
	content, err := made.content()
	return content, made.At.Format(clock), err
}

// clock is how a page tells when it was made.
const clock = "2006-01-02 15:04:05"

// tokens differ each time a page is made, and make no difference to who reads it.
var tokens = regexp.MustCompile(`name="request" value="[^"]*"`)

// publish gives followers a new edition. Its content is another one if it differs in more than its time.
func (f *feed) publish(content []byte, last *[]byte, at string, err error) {
	next, _ := f.now()
	switch {
	case err != nil:
		_, refused := refusalOf(err)
		next.brief = message{Trouble: refused.Text}.event()
	case next.version > 0 && bytes.Equal(tokens.ReplaceAll(content, nil), tokens.ReplaceAll(*last, nil)):
		next.brief = message{At: at}.event()
	default:
		text := string(content)
		next.brief, next.patch = message{At: at}.event(), event{}
		next.full = sync.OnceValue(func() event { return message{Content: &text, At: at}.event() })
		if next.version > 0 {
			next.patch = message{Patch: differences(*last, content), At: at}.event()
		}
		next.version++
		*last = content
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state = next
	close(f.changed)
	f.changed = make(chan struct{})
}

// since is what somebody is sent who has a version of the content: what has changed of the one before, all of it if he has another.
func (e edition) since(version int) []event {
	switch version {
	case e.version:
		return []event{e.brief}
	case e.version - 1:
		if len(e.patch.plain) > 0 {
			return []event{e.patch, e.brief}
		}
	}
	return []event{e.full(), e.brief}
}

// event is the message as a server-sent event.
func (m message) event() event {
	var text bytes.Buffer
	text.WriteString("data: ")
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(m) // of texts and numbers, it cannot fail
	text.WriteByte('\n')
	return pack(text.Bytes())
}

// now is the newest edition, and what is closed when there is another.
func (f *feed) now() (edition, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state, f.changed
}

// followed sends a page to a browser whenever it has changed, until the session or the browser ends.
func (c *Console) followed(show screen) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		visitor, known := c.visitor(r)
		if !known {
			http.Error(w, "not logged in: open the page itself", http.StatusUnauthorized)
			return
		}
		f, leave, taken := c.follow(show, &visit{Visitor: visitor, ctx: r.Context(), request: r})
		if !taken {
			http.Error(w, "too many pages are followed: read this one again by hand", http.StatusServiceUnavailable)
			return
		}
		defer leave()
		to := newPipe(w, r)
		defer to.end()
		watch := time.NewTicker(Pace)
		defer watch.Stop()
		version := 0
		for sends := to.send(pack([]byte("retry: 2000\n\n"))); sends; {
			now, changed := f.now()
			sends, version = to.send(now.since(version)...), now.version
			for waits := sends; waits; {
				select {
				case <-changed:
					waits = false
				case <-watch.C:
					if _, known := c.visitor(r); !known {
						to.send(pack([]byte("event: over\ndata: \n\n")))
						return
					}
				case <-r.Context().Done():
					return
				}
			}
		}
	})
}
