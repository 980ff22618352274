package console

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/chromedp/chromedp"
)

// screens are the paths of all pages, each with what it shows of the site. IDs of the cluster's own stand for words in braces.
func (s *site) screens() map[string]string {
	s.Helper()
	ids := map[string]string{}
	for word, line := range map[string]string{
		"{operation}": "berth operation list --no-headers --limit 1 -o name", "{decision}": "berth decision list --no-headers --limit 1 -o name",
		"{plan}": "berth plan list --no-headers -o name",
	} {
		out, code := s.berth(line)
		if code != 0 || strings.TrimSpace(out) == "" {
			s.Fatalf("%s: exit code %d\n%s", line, code, out)
		}
		first, _, _ := strings.Cut(strings.TrimSpace(out), "\n")
		ids[word] = first[strings.LastIndexByte(first, '/')+1:]
	}
	all := map[string]string{}
	for path, shows := range map[string]string{
		"/": "node3", "/nodes/node1": longName, "/vms": "db1", "/vms?state=running&node=node2": "web1", "/vms?vm=web1": "Where it has been",
		"/vms/web1": "Why is it there?", "/vms/web2": "Description", "/vms/" + longName: "Why is it there?", "/moves": "Live migrations",
		"/operations/{operation}": "What each step was decided on", "/groups": "spread", "/plans": "proposed",
		"/plans/{plan}": "Moves", "/events": "vm.",
		"/events?called=1": "only what somebody asked for", "/events?of=decisions": "decision",
		"/decisions/{decision}": "Each node against each rule", "/vms/web1/week": "167 of 168 hours",
		"/vms/" + longName + "/week": "of the time, on Mon 1",
		"/nodes/node1/week":          "Waiting for a CPU",
		"/vms/web1/day":              "59 of 60 minutes are known",
		"/nodes/node1/day":           "The most is 89.78 %",
		"/capacity":                  "Memory of a VM",
		"/capacity?memory=256M&vcpus=1&add=2&like=node1&large=512G": "node1+2",
	} {
		for word, id := range ids {
			path = strings.ReplaceAll(path, word, id)
		}
		all[path] = shows
	}
	return all
}

// previews are pages that only somebody who may act sees.
var previews = map[string]string{"/vms/web1/migrate": "Nothing is moved yet", "/nodes/node1/plan": "Nothing is moved yet"}

// Every screen shows to whom may act and to whom may only look, with scripts and without, what the cluster has. It names commands that
// work.
func screensShow(s *site) {
	_, member := s.leader()
	screens := s.screens()
	for _, how := range []looks{{}, {readOnly: true}, {scriptless: true}} {
		s.sub(fmt.Sprintf("%+v", how), func(s *site) {
			v := s.open(member, how)
			for path, shows := range screens {
				v.shows(path, shows, how.readOnly)
			}
			for path, shows := range previews {
				if how.readOnly {
					if code := v.goes(path); code != 403 || !strings.Contains(v.text(), "read-only") {
						v.Errorf("%s: %d\n%s", path, code, v.text())
					}
					continue
				}
				v.shows(path, shows, false)
			}
			if code := v.goes("/nothing"); code != 404 {
				v.Errorf("/nothing: %d", code)
			}
		})
	}
	s.sub("commands", func(s *site) {
		v := s.open(member, looks{})
		tried := map[string]bool{}
		for path := range screens {
			v.goes(path)
			for line := range strings.SplitSeq(v.command(), "; ") {
				if tried[line] {
					continue
				}
				tried[line] = true
				if out, code := s.berth(line); code != 0 {
					v.Errorf("%s names %q, whose exit code is %d\n%s", path, line, code, out)
				}
			}
		}
		if len(tried) < 12 {
			v.Errorf("all screens name %d commands", len(tried))
		}
	})
}

// shows checks one screen.
func (v *tab) shows(path, shows string, readOnly bool) {
	v.Helper()
	if code := v.goes(path); code != 200 {
		v.Errorf("%s: %d\n%s", path, code, v.text())
		return
	}
	text := v.text()
	if !strings.Contains(text, shows) || !strings.HasPrefix(v.command(), "berth ") {
		v.Errorf("%s does not show %q, or no command:\n%s", path, shows, text)
	}
	forms := says[[]string](v, `[...document.querySelectorAll('form[method=post]')].map(f => new URL(f.action).pathname)`)
	if changes := slices.DeleteFunc(forms, func(to string) bool { return to == "/logout" }); readOnly && len(changes) > 0 {
		v.Errorf("%s offers to change %v in a session that may only look", path, changes)
	}
}

// What somebody writes into a line of text is text on every screen that shows it, and pushes nothing out of the window.
func hostileTextsStayText(s *site) {
	_, member := s.leader()
	s.does("berth node maintenance node4 on --reason 'x\"><script>window.hacked=3</script>'")
	defer s.does("berth node maintenance node4 off")
	v := s.open(member, looks{width: 400})
	for path, shows := range map[string]string{
		"/vms/web2": "<script>window.hacked=1</script>", "/nodes/node4": "<script>window.hacked=3</script>", "/events": longName, "/": "node4",
		"/vms/" + longName + "/week": longName, "/vms/" + longName + "/day": longName,
	} {
		v.goes(path)
		if !strings.Contains(v.text(), shows) {
			v.Errorf("%s does not show %q:\n%s", path, shows, v.text())
		}
		if hacked := says[bool](v, `window.hacked !== undefined || document.querySelector("main img, main script") !== null`); hacked {
			v.Errorf("%s makes more than text of %q", path, shows)
		}
	}
	v.goes("/vms/web2")
	v.fits("/vms/web2")
	v.goes("/events")
	if aside := says[int](v, `(({scrollWidth, clientWidth}) => scrollWidth - clientWidth)(document.querySelector(".wide"))`); aside > 0 {
		v.Errorf("what happened is %d px aside of a narrow window", aside)
	}
}

// fits checks that a page does not have to be moved sideways to be read.
func (v *tab) fits(path string) {
	v.Helper()
	if wide := says[int](v, `document.documentElement.scrollWidth - window.innerWidth`); wide > 0 {
		widest := says[string](v, `[...document.querySelectorAll("body *")].filter(e => !e.closest(".wide") &&
			e.getBoundingClientRect().right > window.innerWidth + 1).map(e => e.outerHTML.slice(0, 150)).slice(0, 3).join("\n")`)
		v.Errorf("%s is %d px wider than the window: %s", path, wide, widest)
	}
}

var slashes = regexp.MustCompile(`[^a-z0-9]+`)

// All screens in both colours, in two widths, and for who may only look, are kept as pictures, fit into the window, and axe finds nothing
// serious in them.
func screensLookRight(s *site) {
	_, member := s.leader()
	screens := s.screens()
	script, err := axe()
	s.check(err)
	for _, dark := range []bool{false, true} {
		for _, how := range []looks{{width: 1280}, {width: 400}, {width: 1280, readOnly: true}} {
			how.dark = dark
			v := s.open(member, how)
			paths := slices.Collect(maps.Keys(screens))
			if !how.readOnly {
				paths = slices.AppendSeq(paths, maps.Keys(previews))
			}
			for _, path := range paths {
				v.goes(path)
				name := how.name() + "-" + slashes.ReplaceAllString(path, "_")
				v.keep(name)
				v.fits(name)
				v.accessible(name, script)
			}
			v.goes("/nothing")
			v.accessible("refusal", script)
		}
		v := s.blank(member, looks{dark: dark})
		for _, path := range []string{"/", "/login/x"} {
			v.goes(path)
			v.accessible("stranger "+path, script)
			v.keep(fmt.Sprintf("stranger-%t-%s", dark, path))
		}
		says[bool](v, `document.querySelector("main").append(document.createElement("button")), true`)
		if len(v.serious(script)) == 0 {
			v.Error("axe does not see a button that says nothing")
		}
	}
}

// name is what the pictures of such a tab begin with.
func (l looks) name() string {
	name := fmt.Sprintf("%s-%d", map[bool]string{false: "light", true: "dark"}[l.dark], l.width)
	if l.readOnly {
		name += "-readonly"
	}
	return name
}

// accessible complains of what axe finds in the page.
func (v *tab) accessible(name, script string) {
	v.Helper()
	for _, one := range v.serious(script) {
		v.Errorf("%s: %s", name, one)
	}
}

// serious is what axe finds in the page that keeps people from using it.
func (v *tab) serious(script string) (all []string) {
	v.Helper()
	_, err := chromedp.Run(v.ctx, chromedp.Evaluate[chromedp.Void](script))
	v.check(err)
	type violation struct {
		ID, Impact, Help string
		Nodes            []string
	}
	found := says[[]violation](v, `axe.run({resultTypes: ["violations"]}).then(r => r.violations.map(one => (
		{ID: one.id, Impact: one.impact, Help: one.help, Nodes: one.nodes.slice(0, 3).map(n => n.html.slice(0, 160) + " " + (n.any[0]?.message ?? ""))})))`)
	for _, one := range found {
		if one.Impact == "serious" || one.Impact == "critical" {
			all = append(all, fmt.Sprintf("%s (%s): %s\n%s", one.ID, one.Impact, one.Help, strings.Join(one.Nodes, "\n")))
		}
	}
	return all
}
