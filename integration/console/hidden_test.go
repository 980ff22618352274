package console

import (
	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
)

// feeds is how many feeds the page has asked for so far, as the browser has noted when each of them ended.
const feeds = `performance.getEntriesByType("resource").filter((one) => one.name.includes("/live/")).length`

// A page that nobody can see follows nothing. When it is shown again it has what has happened meanwhile, and was not loaded anew.
func hiddenPagesRest(s *site) {
	_, member := s.leader()
	v, other := s.open(member, looks{}), s.open(member, looks{})
	has := func(name string) string {
		return `[...document.querySelectorAll("tbody a")].some((a) => a.textContent === "` + name + `")`
	}
	for _, one := range []*tab{v, other} {
		one.goes("/vms")
	}
	says[int](v, `window.mark = 1`)
	s.check(s.start("seen", "node3"))
	v.until("a VM that was started while the page is shown", has("seen"))

	v.window("minimized")
	v.until("the page being hidden, and the end of its feed", `document.hidden && `+feeds+` === 1`)
	s.check(s.start("unseen", "node3"))
	other.until("a VM on the page that is shown", has("unseen"))
	s.stands("unseen", running, "node3")
	if says[bool](v, has("unseen")) {
		v.Error("a page that is hidden follows the cluster")
	}
	v.window("normal")
	v.until("what has happened meanwhile", `!document.hidden && `+has("unseen"))
	s.check(s.start("again", "node3"))
	v.until("a VM that was started after that", has("again"))
	v.holds("/vms", feeds+` === 1`) // the second one has not ended
}

// window makes the window of the tab small enough to be seen by nobody, or as it was.
func (v *tab) window(state browser.WindowState) {
	v.Helper()
	mine, err := chromedp.Call(v.ctx, browser.GetWindowForTarget, browser.GetWindowForTargetParams{})
	v.check(err)
	_, err = chromedp.Call(v.ctx, browser.SetWindowBounds, browser.SetWindowBoundsParams{
		WindowID: mine.WindowID, Bounds: &browser.Bounds{WindowState: state},
	})
	v.check(err)
}
