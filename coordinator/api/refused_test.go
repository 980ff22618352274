package api

import (
	"testing"

	"connectrpc.com/connect"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// What a role may not call, and what the guard does not let through, is told in the history; what is refused for other reasons is not.
func TestCallsThatAreNotPermittedAreNoted(t *testing.T) {
	d := newDeclarer(t)
	d.m.keeper.Refused()
	agent := berthv1connect.NewBerthServiceClient(d.m.cloud.as(pki.RoleAgent, "n1", "hv1"), d.m.url())
	_, err := agent.ListVMs(t.Context(), connect.NewRequest(&berthv1.ListVMsRequest{}))
	if rpc.Detail(err).GetCode() != rpc.Denied {
		t.Fatal(err)
	}
	if _, err := d.client.GetWebhook(t.Context(), connect.NewRequest(&berthv1.GetWebhookRequest{Name: "none"})); err == nil {
		t.Fatal("there is no such webhook")
	}
	d.m.guard("yes")
	_, err = d.client.AddResource(t.Context(), connect.NewRequest(&berthv1.AddResourceRequest{
		Kind: "image", Name: "one", Settings: map[string]string{"path": "/etc/shadow", "format": "raw"},
	}))
	if rpc.Detail(err).GetCode() != rpc.Denied {
		t.Fatal(err)
	}
	events := d.m.keeper.Refused()
	if len(events) != 2 || events[0].Caller != "agent/hv1" || events[1].Subject != "image/one" || events[1].Caller == "" {
		t.Errorf("%+v", events)
	}
}
