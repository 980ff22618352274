package api

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/api/webhooks"
	"berth/coordinator/history"
	"berth/coordinator/seal"
	"berth/coordinator/state"
	"berth/coordinator/webhook"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// fakeSender tells what a test says.
type fakeSender struct{ tested []webhook.Webhook }

func (f *fakeSender) Health(string) (webhook.Health, bool) {
	return webhook.Health{Taken: 5, Waiting: 2, Since: time.Now(), Problem: "it answered 503"}, true
}

func (f *fakeSender) Test(_ context.Context, hook *webhook.Webhook) (string, time.Duration, error) {
	f.tested = append(f.tested, *hook)
	return "msg_1", time.Second, errors.New("it answered 503")
}

func TestWebhooksAreAddedShownRetriedAndRemoved(t *testing.T) {
	d := newDeclarer(t)
	sender := &fakeSender{}
	d.m.api.WebhookCalls.Config = webhooks.Config{Sender: sender, Keys: func() (seal.Keys, error) { return seal.Keys{{7}}, nil }}
	add := func(r *berthv1.AddWebhookRequest) (*berthv1.AddWebhookResponse, error) {
		answer, err := d.client.AddWebhook(t.Context(), connect.NewRequest(r))
		if err != nil {
			return nil, err
		}
		return answer.Msg, nil
	}
	secret := webhook.SecretText([]byte("thirty-two bytes that are secret"))
	request := &berthv1.AddWebhookRequest{
		Name: "tickets", Url: "https://example.com/in", Kinds: []string{"vm.*"}, Secret: secret, RequestId: "r1",
	}
	answer, err := add(request)
	d.m.cloud.check(err)
	if answer.GetSecret() != secret || answer.GetWebhook().GetUrl() != request.GetUrl() || answer.GetWebhook().GetWaiting() != 2 {
		t.Errorf("%v", answer)
	}
	if again, err := add(request); err != nil || again.GetSecret() != secret {
		t.Errorf("the same request again: %v, %v", again, err)
	}
	_, err = add(&berthv1.AddWebhookRequest{Name: "tickets", Url: "https://example.com/in", Secret: secret})
	wantRefusal(t, err, rpc.Exists, "webhook/tickets")
	_, err = add(&berthv1.AddWebhookRequest{Name: "other", Url: "http://example.com/in", Secret: secret})
	wantRefusal(t, err, rpc.Invalid, "webhook/other")
	_, err = add(&berthv1.AddWebhookRequest{Name: "other", Url: "https://example.com/in", Secret: "short"})
	wantRefusal(t, err, rpc.Invalid, "webhook/other")
	x := d.m.store.Snapshot()
	for _, key := range x.MetaUnder("webhook") {
		if strings.Contains(x.Meta(key), strings.TrimPrefix(secret, webhook.SecretPrefix)) {
			t.Errorf("%s has the secret as it is: %s", key, x.Meta(key))
		}
	}

	hook, progress, _ := webhook.Of(x, "tickets")
	if progress.After.Index == 0 {
		t.Error("it begins at the beginning of the log, and not now")
	}
	progress.Dead = []webhook.Dead{
		{Place: history.Place{Index: 3}, ID: "msg_3", Reason: "it answered 422"}, {Place: history.Place{Index: 4}, ID: "msg_4"},
	}
	var command state.Command
	d.m.cloud.check(webhook.Put(x, &command, &hook, &progress))
	command.Kind = "test"
	d.m.propose(command)
	_, err = d.client.RetryDeliveries(t.Context(), connect.NewRequest(&berthv1.RetryDeliveriesRequest{
		Name: "tickets", Ids: []string{"msg_5"},
	}))
	wantRefusal(t, err, rpc.NotFound, "webhook/tickets")
	retried, err := d.client.RetryDeliveries(t.Context(), connect.NewRequest(&berthv1.RetryDeliveriesRequest{
		Name: "tickets", Ids: []string{"msg_4"},
	}))
	d.m.cloud.check(err)
	shown, err := d.client.GetWebhook(t.Context(), connect.NewRequest(&berthv1.GetWebhookRequest{Name: "tickets"}))
	d.m.cloud.check(err)
	if dead := shown.Msg.GetDead(); retried.Msg.GetRetried() != 1 || len(dead) != 2 || dead[0].GetRetrying() || !dead[1].GetRetrying() {
		t.Errorf("%v", shown.Msg)
	}

	tested, err := d.client.TestWebhook(t.Context(), connect.NewRequest(&berthv1.TestWebhookRequest{Name: "tickets"}))
	d.m.cloud.check(err)
	if tested.Msg.GetTaken() || tested.Msg.GetProblem() == "" || len(sender.tested) != 1 || sender.tested[0].URL != request.GetUrl() {
		t.Errorf("%v", tested.Msg)
	}
	for range 2 { // the second time it is gone already
		_, err = d.client.DeleteWebhook(t.Context(), connect.NewRequest(&berthv1.DeleteWebhookRequest{Name: "tickets", RequestId: "r2"}))
		d.m.cloud.check(err)
	}
	list, err := d.client.ListWebhooks(t.Context(), connect.NewRequest(&berthv1.ListWebhooksRequest{}))
	d.m.cloud.check(err)
	if len(list.Msg.GetWebhooks()) != 0 || len(d.m.store.Snapshot().MetaUnder("webhook")) != 0 {
		t.Errorf("%v", list.Msg)
	}
	_, err = d.client.GetWebhook(t.Context(), connect.NewRequest(&berthv1.GetWebhookRequest{Name: "tickets"}))
	wantRefusal(t, err, rpc.NotFound, "webhook/tickets")
}
