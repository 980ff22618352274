package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/hashicorp/go-hclog"

	"berth/coordinator/console"
	"berth/shared/gen/berth/v1/berthv1connect"
)

// takeMap takes the console's map: the calls that it makes, and the page.
func takeMap(ctx context.Context, s *site) (float64, error) {
	s.agents.reportAll()
	_, calls := berthv1connect.NewBerthServiceHandler(s.api)
	shown := console.New(console.Config{
		Now: time.Now, Log: hclog.NewNullLogger(),
		Desk: openDesk{berthv1connect.NewBerthServiceClient(&http.Client{Transport: within{calls}}, "http://coordinator.inside")},
	}).Handler()
	return s.cpu(5, func(i int) error {
		s.agents.report(i)
		request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
		request.AddCookie(&http.Cookie{Name: "__Host-berth", Value: "scale"})
		answer := httptest.NewRecorder()
		shown.ServeHTTP(answer, request)
		if answer.Code != http.StatusOK {
			return fmt.Errorf("the map: %d: %s", answer.Code, answer.Body)
		}
		return nil
	})
}

// openDesk lets everybody in.
type openDesk struct {
	api berthv1connect.BerthServiceClient
}

var errNoLinks = errors.New("there are no links here")

func (openDesk) Open(context.Context, string, string, string) (string, time.Time, error) {
	return "", time.Time{}, errNoLinks
}

func (d openDesk) Visitor(string, string) (console.Visitor, bool) {
	return console.Visitor{Operator: "scale", Until: time.Now().Add(time.Hour), API: d.api}, true
}

func (openDesk) Close(context.Context, string, string) error { return nil }

// within carries a call to a handler of this process.
type within struct{ handler http.Handler }

func (w within) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := httptest.NewRecorder()
	w.handler.ServeHTTP(answer, r)
	return answer.Result(), nil
}
