package console

import (
	"bytes"
	"compress/gzip"
	"context"
	_ "embed"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"berth/integration/bench/testbed"
	"berth/integration/browser"
	berthv1 "berth/shared/gen/berth/v1"
)

//go:embed testdata/axe.min.js.gz
var axePacked []byte

// axe is axe-core, which finds what people with a disability cannot use.
var axe = sync.OnceValues(func() (string, error) {
	packed, err := gzip.NewReader(bytes.NewReader(axePacked))
	if err != nil {
		return "", err
	}
	script, err := io.ReadAll(packed)
	return string(script), err
})

// launch starts Chromium with a profile of its own, until the test ends.
func launch(t *testing.T) context.Context {
	t.Helper()
	chromium, end, err := browser.Launch(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := end(); err != nil {
			t.Error(err)
		}
	})
	return chromium
}

// tab is a page of the browser, with cookies of its own.
type tab struct {
	*site

	ctx context.Context
	at  string // https://HOST:PORT of the coordinator
}

// looks are how a tab is set up.
type looks struct {
	scriptless bool
	readOnly   bool
	dark       bool
	width      int64
}

// open makes a tab that is logged in to a member's console.
func (s *site) open(member *testbed.Member, how looks) *tab {
	s.Helper()
	v := s.blank(member, how)
	v.login(s.link(how.readOnly))
	return v
}

// blank makes a tab without a session.
func (s *site) blank(member *testbed.Member, how looks) *tab {
	s.Helper()
	ctx, cancel := chromedp.NewContext(s.chromium, chromedp.WithNewBrowserContext())
	v := &tab{site: s, ctx: ctx, at: "https://" + member.Listen.Console}
	messages, read := chromedp.Console(ctx), make(chan struct{})
	go func() {
		defer close(read)
		for one, err := range messages {
			if err != nil {
				return
			}
			if one.IsException() || one.Source == "security" {
				v.Errorf("the page says: %s (%s)", one, one.URL)
			}
		}
	}()
	s.Cleanup(func() {
		cancel()
		<-read
	})
	v.shape(how)
	return v
}

// shape sets the tab up.
func (v *tab) shape(how looks) {
	v.Helper()
	scheme := "light"
	if how.dark {
		scheme = "dark"
	}
	width := how.width
	if width == 0 {
		width = 1280
	}
	v.check(chromedp.Do(v.ctx, chromedp.EmulateViewport(width, 900)))
	_, err := chromedp.Call(v.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	v.check(err)
	_, err = chromedp.Call(v.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: how.scriptless})
	v.check(err)
}

// link is the path of a link that opens a session, which ends with the part of the test: an operator has few at a time.
func (s *site) link(readOnly bool) (path string) {
	s.Helper()
	s.awaits("a link to the console", func(ctx context.Context) error {
		leader, err := s.coordinators.Leader(ctx)
		if err != nil {
			return err
		}
		answer, err := leader.API.OfferSession(ctx, connect.NewRequest(&berthv1.OfferSessionRequest{ReadOnly: readOnly}))
		if err != nil {
			return err
		}
		s.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			// It may have ended, or there is no leader any more.
			_, _ = s.api().RevokeSession(ctx, connect.NewRequest(&berthv1.RevokeSessionRequest{Id: answer.Msg.GetSession().GetId()}))
		})
		address, err := url.Parse(answer.Msg.GetAddress())
		path = address.Path
		return err
	})
	return path
}

// login opens a link and presses its button.
func (v *tab) login(path string) {
	v.Helper()
	v.goes(path)
	v.press("main button")
	v.until("the map", `document.readyState === "complete" && document.querySelector("h1")?.textContent === "Map"`)
}

// goes opens a path of the console and returns the code of the answer. What cannot be answered just now is asked for again.
func (v *tab) goes(path string) int64 {
	v.Helper()
	for end := time.Now().Add(patience); ; {
		// What an earlier page has begun may be in the way of one try.
		ctx, cancel := context.WithTimeout(v.ctx, patience/6)
		answer, err := chromedp.Run(ctx, chromedp.NavigateResponse(v.at+path))
		cancel()
		if err == nil && answer != nil && (answer.Status != http.StatusServiceUnavailable || time.Now().After(end)) {
			return answer.Status
		}
		if time.Now().After(end) || v.ctx.Err() != nil {
			v.Fatalf("open %s: %v", path, err)
		}
	}
}

// press clicks what a selector finds, and waits for the page that this leads to. On a page that changes just then the mouse can miss, as
// a person's can; a form that is sent twice does what it says once.
func (v *tab) press(selector string) {
	v.Helper()
	says[string](v, `document.documentElement.dataset.left = "not"`)
	const left = `document.readyState === "complete" && document.documentElement.dataset.left === undefined`
	for end := time.Now().Add(patience); time.Now().Before(end); {
		v.click(selector)
		for again := time.Now().Add(15 * time.Second); time.Now().Before(again); time.Sleep(50 * time.Millisecond) {
			if v.is(left) {
				return
			}
		}
		if v.is(`document.documentElement.dataset.left === undefined`) {
			v.until("the page after "+selector, left)
			return
		}
	}
	v.Fatalf("%s leads nowhere\n%s", selector, v.text())
}

// is tells whether an expression is true. A page that is just being left answers nothing.
func (v *tab) is(expression string) bool {
	ctx, cancel := context.WithTimeout(v.ctx, 20*time.Second)
	defer cancel()
	is, err := chromedp.Run(ctx, chromedp.Evaluate[bool](expression))
	return err == nil && is
}

// click clicks what a selector finds on a page that stays.
func (v *tab) click(selector string) {
	v.Helper()
	ctx, cancel := context.WithTimeout(v.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.Click(chromedp.CSS(selector))); err != nil {
		v.Fatalf("press %s: %v\n%s", selector, err, v.text())
	}
}

// says evaluates an expression of JavaScript, as a person would look into the page: also where scripts of pages are off.
func says[T any](v *tab, expression string) T {
	v.Helper()
	ctx, cancel := context.WithTimeout(v.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		v.Fatalf("%.200s: %v", expression, err)
	}
	return value
}

// until waits for an expression to be true.
func (v *tab) until(what, expression string) {
	v.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if v.is(expression) {
			return
		}
	}
	v.Fatalf("%s did not come\n%s", what, v.text())
}

// untilText waits until the page shows a text.
func (v *tab) untilText(text string) {
	v.Helper()
	v.until(fmt.Sprintf("the text %q", text), fmt.Sprintf("document.body.innerText.includes(%q)", text))
}

// text is what the page shows.
func (v *tab) text() string {
	ctx, cancel := context.WithTimeout(v.ctx, patience)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string]("document.body.innerText"))
	if err != nil {
		return err.Error()
	}
	return text
}

// command is the line that the page says does the same.
func (v *tab) command() string {
	v.Helper()
	return says[string](v, `document.querySelector("footer code")?.textContent ?? ""`)
}

// keep keeps what the page looks like in a file.
func (v *tab) keep(name string) {
	v.Helper()
	picture, err := chromedp.Run(v.ctx, chromedp.FullScreenshot(100))
	v.check(err)
	v.check(os.WriteFile(filepath.Join(v.kept, strings.NewReplacer("/", "_", "?", "_", "=", "_").Replace(name)+".png"), picture, 0o644))
}
