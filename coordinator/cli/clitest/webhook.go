package clitest

import (
	"time"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
)

// webhookFake answers about webhooks.
type webhookFake struct {
	addWebhook    func(*berthv1.AddWebhookRequest) (*berthv1.AddWebhookResponse, error)
	webhooks      func(*berthv1.ListWebhooksRequest) (*berthv1.ListWebhooksResponse, error)
	webhook       func(*berthv1.GetWebhookRequest) (*berthv1.GetWebhookResponse, error)
	OnTestWebhook func(*berthv1.TestWebhookRequest) (*berthv1.TestWebhookResponse, error)
	deleteWebhook func(*berthv1.DeleteWebhookRequest) (*berthv1.DeleteWebhookResponse, error)
	retry         func(*berthv1.RetryDeliveriesRequest) (*berthv1.RetryDeliveriesResponse, error)
}

func (f *webhookFake) listen(l listener) {
	unary(l, berthv1connect.BerthServiceAddWebhookProcedure, &f.addWebhook)
	unary(l, berthv1connect.BerthServiceListWebhooksProcedure, &f.webhooks)
	unary(l, berthv1connect.BerthServiceGetWebhookProcedure, &f.webhook)
	unary(l, berthv1connect.BerthServiceTestWebhookProcedure, &f.OnTestWebhook)
	unary(l, berthv1connect.BerthServiceDeleteWebhookProcedure, &f.deleteWebhook)
	unary(l, berthv1connect.BerthServiceRetryDeliveriesProcedure, &f.retry)
}

// cannedWebhook is one whose receiver does not answer.
func cannedWebhook() *berthv1.Webhook {
	return &berthv1.Webhook{
		Name: "tickets", Url: "https://tickets.example.com/berth", Kinds: []string{"node.*", "vm.lost"}, CreatedBy: "operator/ann",
		CreatedAt: Ago(48 * time.Hour), After: 904, Dead: 1, Taken: 1203, Waiting: 7, Behind: 2, FailingSince: Ago(time.Minute),
		Problem: "it answered 503 Service Unavailable: not now",
	}
}

func cannedWebhookAnswers() webhookFake {
	return webhookFake{
		addWebhook: func(r *berthv1.AddWebhookRequest) (*berthv1.AddWebhookResponse, error) {
			return &berthv1.AddWebhookResponse{
				SchemaVersion: "1", Webhook: &berthv1.Webhook{Name: r.GetName(), Url: r.GetUrl(), Kinds: r.GetKinds()},
				Secret: "whsec_dGhpcnR5LXR3byBieXRlcyB0aGF0IGFyZSBzZWNyZXQ=",
			}, nil
		},
		webhooks: func(*berthv1.ListWebhooksRequest) (*berthv1.ListWebhooksResponse, error) {
			return &berthv1.ListWebhooksResponse{SchemaVersion: "1", Webhooks: []*berthv1.Webhook{
				{Name: "audit", Url: "https://audit.example.com/", CreatedBy: "operator/bob", CreatedAt: Ago(time.Hour), Taken: 40}, cannedWebhook(),
			}}, nil
		},
		webhook: func(*berthv1.GetWebhookRequest) (*berthv1.GetWebhookResponse, error) {
			return &berthv1.GetWebhookResponse{SchemaVersion: "1", Webhook: cannedWebhook(), Dead: []*berthv1.DeadDelivery{{
				Id: "msg_0123456789abcdef01234567", Kind: "vm.lost", Subject: "vm/web1", At: Ago(time.Hour), Tries: 8, Index: 890,
				Reason: "it answered 422 Unprocessable Entity: no such ticket",
			}}}, nil
		},
		OnTestWebhook: func(*berthv1.TestWebhookRequest) (*berthv1.TestWebhookResponse, error) {
			return &berthv1.TestWebhookResponse{SchemaVersion: "1", DeliveryId: "msg_0123456789abcdef01234567", Taken: true, Seconds: 0.25}, nil
		},
		deleteWebhook: func(*berthv1.DeleteWebhookRequest) (*berthv1.DeleteWebhookResponse, error) {
			return &berthv1.DeleteWebhookResponse{SchemaVersion: "1", Webhook: cannedWebhook()}, nil
		},
		retry: func(*berthv1.RetryDeliveriesRequest) (*berthv1.RetryDeliveriesResponse, error) {
			return &berthv1.RetryDeliveriesResponse{SchemaVersion: "1", Retried: 1}, nil
		},
	}
}
