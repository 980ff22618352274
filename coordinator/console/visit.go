package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"connectrpc.com/connect"

	"berth/shared/rpc"
)

// refusedRefresh is after how many seconds a page is asked for again that could not be shown for now.
const refusedRefresh = 3

// cookieName is of a cookie that a browser gives back to this host alone, and over TLS alone.
const cookieName = "__Host-berth"

// visit is one request of somebody who is logged in.
type visit struct {
	Visitor

	ctx     context.Context
	request *http.Request
	now     time.Time
}

// path is a part of the address, as the pattern of the page names it.
func (v *visit) path(name string) string { return v.request.PathValue(name) }

// asked is a field of a form, or of the address.
func (v *visit) asked(name string) string { return strings.TrimSpace(v.request.FormValue(name)) }

// screen makes what a page shows.
type screen func(*visit) (*page, error)

// action changes something, and tells on which page that is seen.
type action func(*visit) (to string, err error)

// visitor finds who is behind a request.
func (c *Console) visitor(r *http.Request) (Visitor, bool) {
	cookie, err := r.Cookie(cookieName)
	if err != nil {
		return Visitor{}, false
	}
	return c.Desk.Visitor(cookie.Value, r.RemoteAddr)
}

func (c *Console) visited(show screen, live bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		visitor, known := c.visitor(r)
		if !known {
			c.stranger(w, r)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), pageLimit)
		defer cancel()
		made, err := show(&visit{Visitor: visitor, ctx: ctx, request: r, now: c.Now()})
		if err != nil {
			c.refuse(w, r, visitor, err)
			return
		}
		made.Live = live
		c.write(w, r, http.StatusOK, visitor, made)
	})
}

func (c *Console) acted(do action) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		visitor, known := c.visitor(r)
		if !known {
			c.stranger(w, r)
			return
		}
		if visitor.ReadOnly {
			c.refuse(w, r, visitor, errReadOnly)
			return
		}
		if err := r.ParseForm(); err != nil {
			http.Error(w, "the form cannot be read: send it again", http.StatusBadRequest)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), pageLimit)
		defer cancel()
		to, err := do(&visit{Visitor: visitor, ctx: ctx, request: r, now: c.Now()})
		if err != nil {
			c.refuse(w, r, visitor, err)
			return
		}
		http.Redirect(w, r, to, http.StatusSeeOther)
	})
}

var errReadOnly = errors.New("this session is read-only: open another one with 'berth console'")

// showLink asks whether the link is to be used. A mail program or a chat that looks at addresses by itself presses no button.
func (c *Console) showLink(w http.ResponseWriter, r *http.Request) {
	c.write(w, r, http.StatusOK, Visitor{}, &page{name: "link", Title: "Log in", Body: r.PathValue("link")})
}

func (c *Console) login(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		http.Error(w, "the form cannot be read: run 'berth console' again", http.StatusBadRequest)
		return
	}
	cookie, until, err := c.Desk.Open(r.Context(), r.PostForm.Get("link"), r.RemoteAddr, r.UserAgent())
	if err != nil {
		code, said := refusalOf(err)
		c.Log.Info("a link to the console is refused", "address", r.RemoteAddr, "reason", said.Text)
		said.Back = ""
		c.write(w, r, code, Visitor{}, &page{name: "refusal", Title: "Not logged in", Body: said})
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: cookie, Path: "/", Expires: until, Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

func (c *Console) logout(w http.ResponseWriter, r *http.Request) {
	if cookie, err := r.Cookie(cookieName); err == nil {
		if err := c.Desk.Close(r.Context(), cookie.Value, r.RemoteAddr); err != nil {
			visitor, _ := c.visitor(r)
			c.refuse(w, r, visitor, err)
			return
		}
	}
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Path: "/", MaxAge: -1, Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
	c.write(w, r, http.StatusOK, Visitor{}, &page{name: "stranger", Title: "Logged out"})
}

// stranger is all that somebody sees who is not logged in.
func (c *Console) stranger(w http.ResponseWriter, r *http.Request) {
	c.write(w, r, http.StatusUnauthorized, Visitor{}, &page{name: "stranger", Title: "Log in"})
}

// said is a refusal as a page shows it.
type said struct {
	Text, Next, Decision, Back string
}

func refusalOf(err error) (code int, shown said) {
	shown = said{Text: err.Error()}
	var answered *connect.Error
	if errors.As(err, &answered) {
		shown.Text = answered.Message()
	}
	if detail := rpc.Detail(err); detail != nil {
		shown.Next, shown.Decision = detail.GetNextStep(), detail.GetDecisionId()
	}
	switch connect.CodeOf(err) {
	case connect.CodeNotFound:
		code = http.StatusNotFound
	case connect.CodePermissionDenied, connect.CodeUnauthenticated:
		code = http.StatusForbidden
	case connect.CodeInvalidArgument:
		code = http.StatusBadRequest
	case connect.CodeUnavailable, connect.CodeDeadlineExceeded, connect.CodeResourceExhausted:
		code = http.StatusServiceUnavailable
	case connect.CodeInternal, connect.CodeUnknown:
		code = http.StatusInternalServerError
	default:
		code = http.StatusConflict
	}
	if errors.Is(err, errReadOnly) {
		code = http.StatusForbidden
	}
	return code, shown
}

// refuse shows why something is not shown or done.
func (c *Console) refuse(w http.ResponseWriter, r *http.Request, visitor Visitor, err error) {
	code, shown := refusalOf(err)
	shown.Back = "/"
	if from, bad := url.Parse(r.Referer()); bad == nil && from.Host == r.Host && from.Path != "" {
		shown.Back = from.RequestURI()
	}
	if code == http.StatusInternalServerError {
		c.Log.Error("a page of the console failed", "path", r.URL.Path, "error", err)
	}
	made := &page{name: "refusal", Title: "Not done", Body: shown}
	if r.Method == http.MethodGet {
		made.Title = "Not shown"
		if code == http.StatusServiceUnavailable {
			made.Refresh = refusedRefresh // there is no leader, or too much to do: it passes, and the page comes by itself
		}
	}
	c.write(w, r, code, visitor, made)
}

func notFound(v *visit) (*page, error) {
	return nil, connect.NewError(connect.CodeNotFound, errors.New("there is no page "+v.request.URL.Path))
}
