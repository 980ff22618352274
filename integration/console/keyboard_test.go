package console

import (
	"fmt"
	"slices"
	"strings"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// stops are all things of a page that the keyboard has to reach, in their order on the page. What is folded away is not among them.
const stops = `[...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, summary, [tabindex='0']")]
	.filter(e => e.checkVisibility() && (e.tagName === "SUMMARY" || !e.parentElement.closest("details:not([open]) > :not(summary)")))`

// described says which of them one is.
const described = `((e) => e.tagName + " " + [...document.querySelectorAll(e.tagName)].indexOf(e) + " " +
	(e.getAttribute("href") ?? e.name ?? e.ariaLabel ?? "") + " " + e.textContent.slice(0, 20))`

// The keyboard alone reaches every link, field and button of every screen, in the order in which they stand there, and shows where it is.
func theKeyboardReachesAll(s *site) {
	_, member := s.leader()
	screens := s.screens()
	for path, shows := range previews {
		screens[path] = shows
	}
	v := s.open(member, looks{}) // without scripts some pages are loaded anew, and the focus is where it began
	for path := range screens {
		v.goes(path)
		wanted := says[[]string](v, stops+`.map(`+described+`)`)
		var reached []string
		for range wanted {
			v.types(kb.Tab)
			reached = append(reached, says[string](v, described+`(document.activeElement)`))
			if hidden := says[bool](v, `(() => { const e = document.activeElement, c = getComputedStyle(e), r = e.getBoundingClientRect();
				return !e.matches(":focus-visible") || c.outlineStyle === "none" || parseFloat(c.outlineWidth) < 2 || r.right <= 0 })()`); hidden {
				v.Errorf("%s: nobody sees that %s has the focus", path, reached[len(reached)-1])
			}
		}
		if len(wanted) < 9 || !slices.Equal(wanted, reached) {
			v.Errorf("%s: the keyboard reaches\n%s\nwant\n%s", path, strings.Join(reached, "\n"), strings.Join(wanted, "\n"))
		}
	}
	s.sub("and has keys of its own", func(s *site) {
		v := s.open(member, looks{})
		v.goes("/vms/web1")
		for _, c := range []struct{ keys, path string }{
			{"gn", "/"}, {"gv", "/vms"}, {"go", "/moves"}, {"gr", "/groups"}, {"gp", "/plans"}, {"gc", "/capacity"}, {"ge", "/events"}, {"gm", "/"},
		} {
			v.types(c.keys)
			v.until("the screen of "+c.keys, fmt.Sprintf(`location.pathname === %q && document.readyState === "complete"`, c.path))
		}
		v.types("?")
		v.until("the help", `document.getElementById("keys").open && document.activeElement.closest("#keys") !== null`)
		// The browser does nothing else with that key, such as a search of its own.
		const slash = `new KeyboardEvent("keydown", {key: "/", bubbles: true, cancelable: true})`
		if taken := says[bool](v, `!document.activeElement.dispatchEvent(`+slash+`)`); !taken {
			v.Error("the browser does something else with the key of the search, too")
		}
		v.until("the search", `document.activeElement.matches("input[type=search]")`)
		v.types("gv?") // who types a name goes nowhere
		v.types("web1")
		if said := says[string](v, `location.pathname + " " + document.activeElement.value`); said != "/ gv?web1" {
			v.Errorf("what was typed into a field is %q", said)
		}
	})
	s.sub("and acts", func(s *site) {
		v := s.open(member, looks{scriptless: true})
		v.goes("/vms/lot1")
		v.tabTo(`e => e.tagName === "SUMMARY" && e.textContent === "Stop"`)
		v.types(kb.Enter)
		v.tabTo(`e => e.tagName === "BUTTON" && e.textContent === "Stop lot1"`)
		v.types(kb.Enter)
		s.stands("lot1", stopped, "")
		v.goes("/vms/lot1")
		v.tabTo(`e => e.tagName === "BUTTON" && e.textContent === "Start"`)
		v.types(" ")
		s.stands("lot1", running, "")
		v.goes("/")
		v.types(kb.Tab)
		v.types(kb.Enter) // skip to the content
		v.until("the focus in the content", `location.hash === "#content"`)
	})
}

// types presses keys.
func (v *tab) types(keys string) {
	v.Helper()
	v.check(chromedp.Do(v.ctx, chromedp.KeyEvent(keys)))
}

// tabTo presses Tab until what a function of JavaScript wants has the focus.
func (v *tab) tabTo(wanted string) {
	v.Helper()
	for range 200 {
		v.types(kb.Tab)
		if says[bool](v, fmt.Sprintf("(%s)(document.activeElement)", wanted)) {
			return
		}
	}
	v.Fatalf("the keyboard does not reach %s\n%s", wanted, v.text())
}
