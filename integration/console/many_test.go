package console

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/hashicorp/go-hclog"

	"berth/integration/bench/testbed"
	"berth/integration/simagent"
	"berth/shared/pki"
)

// The map of a large site is a picture beside a table of the nodes with problems, and each line of it leads to the nodes that it shows:
// with scripts and without, in both colours, in a narrow window, and by keyboard.
func manyNodesAreAPicture(s *site) {
	const many = 210
	for i := range many {
		runs := s.enrols(fmt.Sprintf("crowd%03d", i))
		if i != 100 {
			s.Cleanup(runs())
		}
	}
	_, member := s.leader()
	script, err := axe()
	s.check(err)
	v := s.open(member, looks{})
	says[int](v, `window.mark = 1`)
	v.until("all figures", `(() => {
		const said = [...document.querySelectorAll(".lines small")].map((e) => e.textContent);
		return said.length === 3 && said.filter((one) => one.includes("unknown")).length === 1;
	})()`)
	if !says[bool](v, `window.mark === 1`) {
		v.Error("the map was loaded anew")
	}
	for _, how := range []looks{{}, {dark: true}, {width: 400}, {scriptless: true}} {
		v := s.open(member, how)
		name := fmt.Sprintf("many-%+v", how)
		for _, path := range []string{"/", "/nodes?cluster=default"} {
			v.goes(path)
			v.fits(name + path)
			v.keep(name + path)
			if !how.scriptless {
				v.accessible(name+path, script)
			}
		}
		v.goes("/")
		// On a busy machine other nodes are late at times.
		v.until("the one node with problems, and a column for each node", `
			[...document.querySelectorAll("tr.trouble th")].map((e) => e.textContent.trim()).join() === "crowd100" &&
			document.querySelector(".line .physical").getAttribute("d").split("M").length === 101`)
		if high := says[float64](v, `document.querySelector(".line .physical").getBoundingClientRect().height`); high < 10 {
			v.Errorf("a line is %g px high", high)
		}
		v.press(".lines li:nth-child(2) a")
		listed := says[[]string](v, `[...document.querySelectorAll("tbody th")].map((e) => e.textContent.trim())`)
		if len(listed) != 100 || listed[0] != "crowd100" || listed[99] != "crowd199" {
			v.Errorf("the second line leads to %v", listed)
		}
	}
	v.tabTo(`e => e.textContent === "crowd100 to crowd199"`)
}

// enrols makes a node that comes and goes: each call of runs lets it run until what that gives is called.
func (s *site) enrols(name string) (runs func() (end func())) {
	s.Helper()
	token, err := s.coordinators.Token(s.Context(), pki.PurposeAgent, name)
	s.check(err)
	identity, err := simagent.Enrol(s.Context(), s.coordinators.Members[0].Listen.API, token, name, filepath.Join(s.coordinators.Dir, name))
	s.check(err)
	agent, err := s.fleet.Nodes.Add(identity, testbed.SimulatedSize, hclog.NewNullLogger())
	s.check(err)
	return func() func() {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() { defer close(ended); _ = agent.Run(ctx) }() // it ends with its context only
		return func() { cancel(); <-ended }
	}
}
