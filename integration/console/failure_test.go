package console

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"connectrpc.com/connect"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// sessions are those that browsers have opened.
func (s *site) sessions(ctx context.Context) ([]*berthv1.Session, error) {
	answer, err := s.api().ListSessions(ctx, connect.NewRequest(&berthv1.ListSessionsRequest{}))
	if err != nil {
		return nil, err
	}
	return answer.Msg.GetSessions(), nil
}

// A link is good once, and a page that is open when its session is ended becomes the login page by itself.
func sessionsEnd(s *site) {
	_, member := s.leader()
	for _, scriptless := range []bool{false, true} {
		s.sub(fmt.Sprintf("without scripts %t", scriptless), func(s *site) {
			v := s.blank(member, looks{scriptless: scriptless})
			if code := v.goes("/vms/web1"); code != 401 || strings.Contains(v.text(), "web1") || !strings.Contains(v.text(), "berth console") {
				v.Errorf("without a session: %d\n%s", code, v.text())
			}
			before, err := s.sessions(s.Context())
			s.check(err)
			known := map[string]bool{}
			for _, one := range before {
				known[one.GetId()] = true
			}
			link := s.link(false)
			v.login(link)
			v.goes(link)
			v.press("main button")
			v.untilText("this link was used, or has ended")
			v.untilText("berth console")
			v.goes("/moves")
			v.untilText("Live migrations")
			now, err := s.sessions(s.Context())
			s.check(err)
			for _, one := range now {
				if !known[one.GetId()] {
					s.does("berth session revoke " + one.GetId())
				}
			}
			v.until("the login page", `document.querySelector("h1")?.textContent === "Log in"`)
			if strings.Contains(v.text(), "Live migrations") {
				v.Errorf("it still shows\n%s", v.text())
			}
		})
	}
	s.sub("a link that was taken back", func(s *site) {
		link := s.link(false)
		now, err := s.sessions(s.Context())
		s.check(err)
		for _, one := range now {
			if one.GetOpenedAt() == nil {
				s.does("berth session revoke " + one.GetId())
			}
		}
		v := s.blank(member, looks{})
		v.goes(link)
		v.press("main button")
		v.untilText("this link was used, or has ended")
	})
	s.sub("logout", func(s *site) {
		v := s.open(member, looks{})
		v.press(`form[action="/logout"] button`)
		v.untilText("Logged out")
		if code := v.goes("/"); code != 401 {
			v.Errorf("after the logout: %d", code)
		}
	})
}

// The leader dies while pages of another coordinator are open: they go on by themselves, and what is told of the time around it has no gap.
func theLeaderDies(s *site) {
	leader, follower := s.leader()
	plain := s.open(follower, looks{scriptless: true})
	v := s.open(follower, looks{})
	s.check(s.start("before", "node2"))
	s.stands("before", running, "")
	at := says[string](v, `document.querySelector("footer").innerText`)
	says[int](v, `window.mark = 1`)
	s.check(s.coordinators.Stop(leader, os.Signal(syscall.SIGKILL)))
	s.awaits("another leader", func(ctx context.Context) error {
		now, err := s.coordinators.Leader(ctx)
		if err == nil && now == leader {
			err = errors.New("it is the old one")
		}
		return err
	})
	s.awaits("a start by the next leader", func(context.Context) error { return s.start("after", "node2") })
	s.stands("after", running, "")
	for _, page := range []*tab{v, plain} {
		page.until("the map of the next leader", fmt.Sprintf(`document.querySelector("h1")?.textContent === "Map" &&
			!document.querySelector("main").innerText.includes("not be read") &&
			[...document.querySelectorAll(".tiles dd")].some(e => /^coord/.test(e.textContent) && e.textContent !== %q) &&
			document.querySelector("footer").innerText !== %q`, leader.Name, at))
	}
	v.holds("/", `document.querySelector("#told").textContent === ""`)
	v.goes("/events")
	for _, name := range []string{"before", "after"} {
		v.untilText("vm/" + name)
	}
	s.check(s.coordinators.Start(leader))
	s.check(s.coordinators.AwaitWhole(s.Context()))
	again := s.blank(leader, looks{})
	s.awaits("its console", func(context.Context) error {
		if code := again.goes("/"); code != 401 {
			return fmt.Errorf("it answers %d", code)
		}
		return nil
	})
}

// start starts a VM on a node. Whatever its leader was told, it is started once.
func (s *site) start(name, node string) error {
	ctx, cancel := context.WithTimeout(s.Context(), 30*time.Second)
	defer cancel()
	_, err := s.api().StartVM(ctx, connect.NewRequest(&berthv1.StartVMRequest{
		Name: name, Node: node, RequestId: "start-" + name, Vm: &berthv1.NewVM{Spec: &berthv1.VMSpec{MemoryBytes: int64(units.GiB), Vcpus: 1}},
	}))
	return err
}
