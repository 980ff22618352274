// Package webhooks answers the calls about the addresses that are sent what happens.
package webhooks

import (
	"context"
	"slices"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/gate"
	"berth/coordinator/api/refusal"
	"berth/coordinator/history"
	"berth/coordinator/model"
	"berth/coordinator/seal"
	"berth/coordinator/state"
	"berth/coordinator/webhook"
	"berth/coordinator/wire"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

const usage = "see 'berth webhook add --help'"

// Sender sends what happens. Package webhook implements it.
type Sender interface {
	Health(name string) (webhook.Health, bool)
	Test(ctx context.Context, hook *webhook.Webhook) (id string, took time.Duration, err error)
}

// Config is what the calls need beside a source.
type Config struct {
	Sender Sender
	Keys   func() (seal.Keys, error) // what secrets are sealed with
}

// WebhookCalls are the calls.
type WebhookCalls struct {
	*answer.Source
	Config
}

// Of makes the calls.
func Of(source *answer.Source, config Config) WebhookCalls { return WebhookCalls{source, config} }

// AddWebhook has the leader send what happens from now on.
func (s WebhookCalls) AddWebhook(
	ctx context.Context, request *connect.Request[berthv1.AddWebhookRequest],
) (*connect.Response[berthv1.AddWebhookResponse], error) {
	const kind = "add webhook"
	message := request.Msg
	made := webhook.Webhook{
		Name: message.GetName(), URL: message.GetUrl(), Kinds: message.GetKinds(), CA: message.GetCaPem(), HTTP: message.GetAllowHttp(),
		Local: message.GetAllowLocal(), CreatedBy: gate.CallerOf(ctx).String(),
	}
	subject := "webhook/" + made.Name
	if err := made.Check(); err != nil {
		return nil, refusal.Invalid(subject, usage, err)
	}
	secret, err := webhook.ParseSecret(message.GetSecret())
	if err != nil {
		return nil, refusal.Invalid(subject, usage, err)
	}
	keys, err := s.Keys()
	if err != nil {
		return nil, err
	}
	if err := made.Hide(keys, secret); err != nil {
		return nil, err
	}
	p, err := s.Propose(ctx, message.GetRequestId(), func(p *answer.Moment) (command state.Command, err error) {
		names := webhook.Names(p.Snapshot)
		switch {
		case p.Answered(message.GetRequestId(), kind):
			return command, answer.ErrUnchanged
		case slices.Contains(names, made.Name):
			return command, refusal.New(rpc.Exists, subject, "give another name, or remove that one first",
				"there is a webhook %q already", made.Name)
		case len(names) >= webhook.MaxWebhooks:
			return command, refusal.New(rpc.Conflict, subject, "remove one that is not needed any more",
				"there are %d webhooks already, as many as there may be", len(names))
		}
		made.CreatedAt = p.At.UTC()
		command = state.Command{Kind: kind, Events: []model.Event{p.Event(ctx, "webhook.added", subject, "sends to %s", made.URL)}}
		return command, webhook.Put(p.Snapshot, &command, &made, &webhook.Progress{After: history.EndOf(p.Index())})
	})
	if err != nil {
		return nil, err
	}
	shown, _, err := s.named(p, made.Name)
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.AddWebhookResponse{
		SchemaVersion: wire.SchemaVersion, Webhook: shown, Secret: webhook.SecretText(secret),
	}), nil
}

// ListWebhooks answers with all of them.
func (s WebhookCalls) ListWebhooks(
	ctx context.Context, request *connect.Request[berthv1.ListWebhooksRequest],
) (*connect.Response[berthv1.ListWebhooksResponse], error) {
	page, err := answer.PageOf(request.Msg, answer.MaxList)
	if err != nil {
		return nil, err
	}
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	response := &berthv1.ListWebhooksResponse{SchemaVersion: wire.SchemaVersion}
	part, next := answer.Cut(webhook.Names(p.Snapshot), page, answer.Ascending, func(name string) string { return name })
	response.NextPageToken = next
	for _, name := range part {
		if shown, _, err := s.named(p, name); err == nil {
			response.Webhooks = append(response.Webhooks, shown)
		}
	}
	return connect.NewResponse(response), nil
}

// GetWebhook answers with one, and with what its receiver could not be given.
func (s WebhookCalls) GetWebhook(
	ctx context.Context, request *connect.Request[berthv1.GetWebhookRequest],
) (*connect.Response[berthv1.GetWebhookResponse], error) {
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	shown, progress, err := s.named(p, request.Msg.GetName())
	if err != nil {
		return nil, err
	}
	response := &berthv1.GetWebhookResponse{SchemaVersion: wire.SchemaVersion, Webhook: shown}
	for i := range progress.Dead {
		dead := &progress.Dead[i]
		response.Dead = append(response.Dead, &berthv1.DeadDelivery{
			Id: dead.ID, Kind: dead.Kind, Subject: dead.Subject, At: timestamppb.New(dead.At), Tries: int32(dead.Tries), Reason: dead.Reason,
			Retrying: dead.Again, Index: dead.Index,
		})
	}
	return connect.NewResponse(response), nil
}

// TestWebhook sends something that did not happen.
func (s WebhookCalls) TestWebhook(
	ctx context.Context, request *connect.Request[berthv1.TestWebhookRequest],
) (*connect.Response[berthv1.TestWebhookResponse], error) {
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	hook, _, known := webhook.Of(p.Snapshot, request.Msg.GetName())
	if !known {
		return nil, refusal.NotFound("webhook", request.Msg.GetName())
	}
	id, took, err := s.Sender.Test(ctx, &hook)
	response := &berthv1.TestWebhookResponse{SchemaVersion: wire.SchemaVersion, DeliveryId: id, Taken: err == nil, Seconds: took.Seconds()}
	if err != nil {
		response.Problem = err.Error()
	}
	return connect.NewResponse(response), nil
}

// DeleteWebhook ends the sending, and forgets what was not sent.
func (s WebhookCalls) DeleteWebhook(
	ctx context.Context, request *connect.Request[berthv1.DeleteWebhookRequest],
) (*connect.Response[berthv1.DeleteWebhookResponse], error) {
	const kind = "remove webhook"
	name, key := request.Msg.GetName(), request.Msg.GetRequestId()
	shown := &berthv1.Webhook{Name: name}
	_, err := s.Propose(ctx, key, func(p *answer.Moment) (command state.Command, err error) {
		found, _, err := s.named(p, name)
		if err != nil {
			if p.Answered(key, kind) {
				err = answer.ErrUnchanged
			}
			return command, err
		}
		shown = found
		command = state.Command{
			Kind: kind, Events: []model.Event{p.Event(ctx, "webhook.deleted", "webhook/"+name, "sends to %s no more", found.GetUrl())},
		}
		webhook.Remove(p.Snapshot, &command, name)
		return command, nil
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.DeleteWebhookResponse{SchemaVersion: wire.SchemaVersion, Webhook: shown}), nil
}

// RetryDeliveries has what was given up tried again. The leader finds it in its history.
func (s WebhookCalls) RetryDeliveries(
	ctx context.Context, request *connect.Request[berthv1.RetryDeliveriesRequest],
) (*connect.Response[berthv1.RetryDeliveriesResponse], error) {
	name, ids := request.Msg.GetName(), request.Msg.GetIds()
	retried := 0
	_, err := s.Propose(ctx, request.Msg.GetRequestId(), func(p *answer.Moment) (command state.Command, err error) {
		hook, progress, known := webhook.Of(p.Snapshot, name)
		if !known {
			return command, refusal.NotFound("webhook", name)
		}
		for _, id := range ids {
			if !slices.ContainsFunc(progress.Dead, func(d webhook.Dead) bool { return d.ID == id }) {
				return command, refusal.New(rpc.NotFound, "webhook/"+name, "see 'berth webhook dead "+name+"'",
					"webhook %s has not given up a delivery %q", name, id)
			}
		}
		retried = 0
		for i := range progress.Dead {
			if len(ids) == 0 || slices.Contains(ids, progress.Dead[i].ID) {
				progress.Dead[i].Again = true
				retried++
			}
		}
		if retried == 0 {
			return command, answer.ErrUnchanged
		}
		command = state.Command{Kind: "retry deliveries", Events: []model.Event{
			p.Event(ctx, "webhook.retried", "webhook/"+name, "what was given up is tried again: %d deliveries", retried),
		}}
		return command, webhook.Put(p.Snapshot, &command, &hook, &progress)
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.RetryDeliveriesResponse{SchemaVersion: wire.SchemaVersion, Retried: int32(retried)}), nil
}

// named is a webhook as it is shown.
func (s WebhookCalls) named(p *answer.Moment, name string) (*berthv1.Webhook, webhook.Progress, error) {
	hook, progress, known := webhook.Of(p.Snapshot, name)
	if !known {
		return nil, progress, refusal.NotFound("webhook", name)
	}
	shown := &berthv1.Webhook{
		Name: hook.Name, Url: hook.URL, Kinds: hook.Kinds, AllowHttp: hook.HTTP, AllowLocal: hook.Local, OwnCa: hook.CA != "",
		CreatedBy: hook.CreatedBy, CreatedAt: timestamppb.New(hook.CreatedAt), After: progress.After.Index, Dead: int32(len(progress.Dead)),
		Dropped: progress.Dropped, Lost: progress.Lost,
	}
	if health, sends := s.Sender.Health(name); sends {
		shown.Taken, shown.Waiting, shown.Behind, shown.Problem = health.Taken, int32(health.Waiting), health.Behind, health.Problem
		if !health.Since.IsZero() {
			shown.FailingSince = timestamppb.New(health.Since)
		}
	}
	return shown, progress, nil
}
