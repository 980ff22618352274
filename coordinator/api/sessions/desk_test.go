package sessions

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"berth/shared/pki"
	"berth/shared/rpc"
)

// A call from inside comes as its operator from the browser's address, and its answer is that of the handler.
func TestACallFromInsideIsThatOfItsOperator(t *testing.T) {
	w := within{
		who: pki.Bearer{Identity: pki.Identity{Role: pki.RoleOperator, ID: "o1", Name: "alice"}}, address: "192.0.2.7:50000",
		may: func(string) bool { return true },
		desk: &Desk{API: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			who, known := rpc.Bearer(r.Context())
			if body, _ := io.ReadAll(r.Body); !known || who.ID != "o1" || r.RemoteAddr != "192.0.2.7:50000" || string(body) != "asked" {
				t.Errorf("%v asks %q from %s", who, body, r.RemoteAddr)
			}
			w.Header().Set("Kept", "yes")
			w.WriteHeader(http.StatusTeapot)
			w.Header().Set(http.TrailerPrefix+"Late", "too")
			_, _ = io.WriteString(w, "answered")
		})},
	}
	answer, err := w.RoundTrip(httptest.NewRequest(http.MethodPost, inside+"/service/method", strings.NewReader("asked")))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil || string(body) != "answered" || answer.StatusCode != http.StatusTeapot || answer.Header.Get("Kept") != "yes" ||
		answer.Trailer.Get("Late") != "too" {
		t.Errorf("answered %d, %v, %v, %q, %v", answer.StatusCode, answer.Header, answer.Trailer, body, err)
	}
}

func TestAHandlerThatBreaksOffEndsOneCallOnly(t *testing.T) {
	w := within{
		may:  func(string) bool { return true },
		desk: &Desk{API: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })},
	}
	answer, err := w.RoundTrip(httptest.NewRequest(http.MethodPost, inside+"/service/method", http.NoBody))
	if !errors.Is(err, errBroken) {
		if answer != nil {
			_ = answer.Body.Close()
		}
		t.Errorf("got %v", err)
	}
}
