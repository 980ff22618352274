package daemon

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/targets"
	"berth/shared/config"
	berthv1 "berth/shared/gen/berth/v1"
)

// A coordinator tells Prometheus of itself from the start, and counts what it decides.
func TestFiguresAreServed(t *testing.T) {
	m := newMachine(t, "c1")
	c := m.load()
	c.Metrics.Listen = freeAddress(t)
	m.check(config.Write(m.config, c, 0o644))
	m.init()
	m.run()
	m.status("", led)
	answer, err := http.Get("http://" + c.Metrics.Listen + targets.Path)
	m.check(err)
	listed, err := io.ReadAll(answer.Body)
	m.check(err)
	m.check(answer.Body.Close())
	if string(listed) != "[]\n" || answer.StatusCode != http.StatusOK { // it listens for this machine alone
		t.Errorf("%s: %s", answer.Status, listed)
	}
	_, refused := m.operator("").StartVM(t.Context(), connect.NewRequest(&berthv1.StartVMRequest{
		Name: "web", Vm: &berthv1.NewVM{Spec: &berthv1.VMSpec{MemoryBytes: 512 << 20, Vcpus: 1}},
	}))
	if refused == nil {
		t.Fatal("a VM was started without nodes")
	}
	want := []string{
		"\nberth_raft_leader 1\n", "\nberth_reports_available 1\n", "\nberth_raft_member_healthy{member=\"c1\"} 1\n",
		"\nberth_vms{state=\"running\"} 0\n", "\nprocess_open_fds ", "\nberth_decisions_total{purpose=\"start\",outcome=\"refused\"} 1\n",
	}
	var text string
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+c.Metrics.Listen+"/metrics", nil)
		m.check(err)
		answer, err := client.Do(request)
		if err != nil {
			continue
		}
		read, err := io.ReadAll(answer.Body)
		m.check(err)
		m.check(answer.Body.Close())
		text = string(read)
		if missing(text, want) == "" {
			return
		}
	}
	t.Errorf("%q is missing in\n%s", missing(text, want), text)
}

func missing(text string, want []string) string {
	for _, one := range want {
		if !strings.Contains(text, one) {
			return one
		}
	}
	return ""
}
