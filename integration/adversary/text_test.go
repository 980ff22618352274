package adversary

import (
	"strings"
	"testing"

	berthv1 "berth/shared/gen/berth/v1"
)

const (
	domain = "6c0e8bd2-6f4f-4c55-8b3e-000000000010"
	// mostText is how much of a text of an agent is kept, in bytes.
	mostText = 512
)

// strange are texts that steer a terminal, pretend to be other lines, or fill the log.
var strange = []string{
	"\x1b]0;owned\x07\x1b[2J\x1b[1;1H", "fine\nERROR all is lost", "a\u202egpj.exe", "\u009b31m", strings.Repeat("x", 1<<20), "\x00\x7f",
}

func judge(t *testing.T, what, text string) {
	t.Helper()
	if len(text) > mostText || strings.ContainsAny(text, "\x00\x07\n\x1b\x7f\u009b\u202e") {
		t.Errorf("%s is kept as it came: %d bytes, %.60q", what, len(text), text)
	}
}

func TestWhatAnAgentWritesIsAShortLine(t *testing.T) {
	l := lead(t)
	bad := l.open("n1")
	for i, text := range strange {
		bad.list(&berthv1.Domain{
			Uuid: domain, Name: text, State: berthv1.DomainState_DOMAIN_STATE_PAUSED, StateReason: text, OperationId: text, Vcpus: int32(i + 1),
			Bindings: &berthv1.Bindings{Bindings: []*berthv1.Binding{{What: text, Name: text}}},
		})
		l.eventually("the inventory", func() bool {
			shown := l.inventory.Domains("n1")
			return len(shown) == 1 && shown[0].GetVcpus() == int32(i+1)
		})
		shown := l.inventory.Domains("n1")[0]
		for what, kept := range map[string]string{
			"a name": shown.GetName(), "a reason": shown.GetStateReason(), "an operation": shown.GetOperationId(),
			"a binding": shown.GetBindings().GetBindings()[0].GetName(),
		} {
			judge(t, what, kept)
		}
		l.check(bad.say(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_Result{Result: &berthv1.CommandResult{
			OperationId: "op", Step: 1, Outcome: berthv1.CommandOutcome_COMMAND_OUTCOME_FAILED, Error: text, Note: text,
		}}}))
		answer := <-l.answers
		judge(t, "an error", answer.Error)
		judge(t, "a note", answer.Note)
		l.check(bad.say(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_Libvirt{Libvirt: &berthv1.LibvirtStatus{
			Error: text, Ailments: []string{text},
		}}}))
		l.check(bad.say(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_Telemetry{Telemetry: &berthv1.NodeTelemetry{Ailing: text}}}))
		l.eventually("the sample", func() bool { return l.inventory.Telemetry("n1") != nil })
		judge(t, "an ailment", l.inventory.Telemetry("n1").GetAiling())
	}
}

func TestWhatIsWrittenInOtherAlphabetsStays(t *testing.T) {
	l := lead(t)
	good := l.open("n1")
	const name, document = "größe-端末", "<domain>\n\t<name>端末</name>\n</domain>"
	good.list(&berthv1.Domain{Uuid: domain, Name: name, State: berthv1.DomainState_DOMAIN_STATE_RUNNING, Devices: &berthv1.Devices{
		Devices: []*berthv1.Device{{Xml: document}},
	}})
	l.eventually("the inventory", func() bool { return len(l.inventory.Domains("n1")) == 1 })
	shown := l.inventory.Domains("n1")[0]
	if shown.GetName() != name || shown.GetDevices().GetDevices()[0].GetXml() != document {
		t.Errorf("it is kept as %v", shown)
	}
}
