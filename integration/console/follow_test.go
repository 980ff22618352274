package console

import (
	"connectrpc.com/connect"

	berthv1 "berth/shared/gen/berth/v1"
)

// A page that is open becomes what it would be by now, and is not loaded anew: what was typed, unfolded and focused stays.
func pagesFollow(s *site) {
	_, member := s.leader()
	v := s.open(member, looks{})
	v.goes("/vms")
	says[int](v, `window.mark = 1`)
	v.click(`input[name=customer]`)
	v.types("acme")
	s.check(s.start("late", "node2"))
	v.until("the row of a new VM", `[...document.querySelectorAll("tbody a")].some(a => a.textContent === "late")`)
	v.holds("/vms", `document.querySelector("input[name=customer]").value === "acme" && document.activeElement.name === "customer"`)

	v.goes("/vms/late")
	says[int](v, `window.mark = 1`)
	v.click(`details[data-key=reboot] summary`)
	v.until("the unfolded button", `document.querySelector("details[data-key=reboot]").open`)
	request := says[string](v, `document.querySelector('form[action$="/reboot"] input[name=request]').value`)
	_, err := s.api().MigrateVM(s.Context(), connect.NewRequest(&berthv1.MigrateVMRequest{Vm: "late", Node: "node3"}))
	s.check(err)
	v.until("its next node", `document.querySelector(".facts").innerText.includes("node3")`)
	v.holds("/vms/late", `document.querySelector("details[data-key=reboot]").open`)
	if anew := says[string](v, `document.querySelector('form[action$="/reboot"] input[name=request]').value`); anew == request {
		v.Errorf("the form of a page that has changed has the token of before")
	}
	_, err = s.api().StopVM(s.Context(), connect.NewRequest(&berthv1.StopVMRequest{Vm: "late"}))
	s.check(err)
	v.until("the button that starts it", `document.querySelector('form[action="/vms/late/start"] button') !== null`)
	v.holds("/vms/late", `document.querySelector("details[data-key=reboot]") === null`)
	v.press(`form[action="/vms/late/start"] button`)
	s.stands("late", running, "")

	v.goes("/")
	if hidden := says[bool](v, `document.querySelector("form.search").hidden`); hidden {
		v.Error("the map has no search where there are scripts")
	}
	says[int](v, `window.mark = 1`)
	focused := `document.activeElement.textContent === "node3" && document.activeElement.matches(":focus-visible")`
	v.tabTo(`e => e.textContent === "node3"`)
	s.does("berth node maintenance node4 on --reason 'new disks'")
	v.until("the maintenance", `document.querySelector("main").innerText.includes("maintenance")`)
	v.holds("/", focused)
	s.does("berth node maintenance node4 off")
	v.until("the end of the maintenance", `!document.querySelector("main").innerText.includes("maintenance")`)
	v.holds("/", focused)
	// A paragraph that goes, and one that comes, leave what stands behind them as it is.
	v.goes("/vms/late")
	says[int](v, `window.mark = 1`)
	v.tabTo(`e => e.textContent.startsWith("All events")`)
	for _, wanted := range []string{"true", "false"} {
		says[bool](v, `document.getElementById("shown").prepend(Object.assign(document.createElement("p"), {id: "odd"})), true`)
		s.does("berth vm set late --description " + wanted)
		v.until("the description", `document.querySelector(".facts").innerText.includes("`+wanted+`") && !document.getElementById("odd")`)
		v.holds("/vms/late", `document.activeElement.textContent.startsWith("All events")`)
	}
}

// holds checks that a page was not loaded anew, and something else of it.
func (v *tab) holds(path, expression string) {
	v.Helper()
	if !says[bool](v, `window.mark === 1`) {
		v.Errorf("%s was loaded anew", path)
	}
	if !says[bool](v, expression) {
		v.Errorf("%s: not so: %s\n%s", path, expression, v.text())
	}
}
