package console

// The tables of a week stand below each other hour by hour, and no name of a day is broken, however narrow the window is.
func weeksLineUp(s *site) {
	_, member := s.leader()
	for _, width := range []int64{1280, 400} {
		v := s.open(member, looks{width: width})
		for _, path := range []string{"/vms/web1/week", "/nodes/node1/week"} {
			v.goes(path)
			if tables := says[int](v, `document.querySelectorAll("table.week").length`); tables != 3 {
				v.Errorf("%s at %d px has %d tables", path, width, tables)
			}
			odd := says[[]string](v, `(() => {
				const lefts = (t) => [...t.rows[0].cells].map((c) => Math.round(c.getBoundingClientRect().left)).join();
				const tables = [...document.querySelectorAll("table.week")];
				const apart = tables.filter((t) => lefts(t) !== lefts(tables[0])).map((t) => "apart: " + lefts(t));
				const broken = tables.flatMap((t) => [...t.tBodies[0].rows]).map((r) => r.cells[0]).filter((c) =>
					c.getBoundingClientRect().height > 2.5 * parseFloat(getComputedStyle(c).fontSize)).map((c) => "broken: " + c.textContent);
				return [...apart, ...broken];
			})()`)
			for _, one := range odd {
				v.Errorf("%s at %d px: %s", path, width, one)
			}
		}
	}
}
