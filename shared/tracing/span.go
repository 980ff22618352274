package tracing

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"berth/shared/buildinfo"
)

// Span is something that took a time. Its own ID, and that of its trace, follow from what it is about: coordinators and agents make parts
// of one trace without telling each other anything, and what is sent twice is the same span.
type Span struct {
	Operation string // ID; the trace is that of the operation, or of the plan that has this ID
	Name      string // what was done; empty: the operation as a whole, which all others are parts of
	Part      string // tells spans of one name apart
	Kind      string // shown as the name of the whole
	Begun     time.Time
	Ended     time.Time
	Failed    string // why; empty: it did not
	About     map[string]string
	Calls     bool   // it is the program that has asked for the operation: the whole is a part of it
	Called    bool   // of the whole: such a program tells of itself
	Linked    string // ID of another operation or plan: its whole has to do with this; empty: none has
}

// A request that is traced by who makes it begins its ID with this. So whoever tells of the operation knows that something is above it,
// also another leader, and nothing else has to be kept.
const mark = "traced-"

// Marked is the ID of a request of a program that tells of itself.
func Marked(request string) string {
	if IsMarked(request) {
		return request
	}
	return mark + request
}

// IsMarked tells whether who has made a request tells of itself.
func IsMarked(request string) bool { return strings.HasPrefix(request, mark) }

// idOf is so many bytes that follow from words.
func idOf(size int, words ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(words, "\x00")))
	return hex.EncodeToString(sum[:size])
}

// TraceID is the ID of an operation's trace, in hexadecimal, as the user of a collector looks for it.
func TraceID(operation string) string { return idOf(16, "trace", operation) }

func spanID(operation, name, part string) string { return idOf(8, "span", operation, name, part) }

func wholeID(operation string) string { return spanID(operation, "", "") }

// What OTLP says in numbers.
const (
	internalKind = 1
	clientKind   = 3
	failedCode   = 2
)

// The messages of OTLP in JSON, as far as they are used.
type (
	request struct {
		ResourceSpans []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource struct {
			Attributes []attribute `json:"attributes"`
		} `json:"resource"`
		ScopeSpans []scopeSpans `json:"scopeSpans"`
	}
	scopeSpans struct {
		Scope struct {
			Name    string `json:"name"`
			Version string `json:"version"`
		} `json:"scope"`
		Spans []sentSpan `json:"spans"`
	}
	sentSpan struct {
		TraceID    string      `json:"traceId"`
		SpanID     string      `json:"spanId"`
		ParentID   string      `json:"parentSpanId,omitempty"`
		Name       string      `json:"name"`
		Kind       int         `json:"kind"`
		Begun      string      `json:"startTimeUnixNano"`
		Ended      string      `json:"endTimeUnixNano"`
		Attributes []attribute `json:"attributes,omitempty"`
		Links      []link      `json:"links,omitempty"`
		Status     *status     `json:"status,omitempty"`
	}
	link struct {
		TraceID string `json:"traceId"`
		SpanID  string `json:"spanId"`
	}
	status struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	attribute struct {
		Key   string `json:"key"`
		Value struct {
			Text string `json:"stringValue"`
		} `json:"value"`
	}
)

func attributes(about map[string]string) []attribute {
	var all []attribute
	for key, value := range about {
		if value == "" {
			continue
		}
		one := attribute{Key: key}
		one.Value.Text = value
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b attribute) int { return strings.Compare(a.Key, b.Key) })
	return all
}

// message is spans of a service as they are sent.
func message(service, instance string, spans []Span) ([]byte, error) {
	var scope scopeSpans
	scope.Scope.Name, scope.Scope.Version = "berth", buildinfo.Version()
	for i := range spans {
		scope.Spans = append(scope.Spans, spans[i].sent())
	}
	var from resourceSpans
	from.Resource.Attributes = attributes(map[string]string{
		"service.name": service, "service.instance.id": instance, "service.version": buildinfo.Version(),
	})
	from.ScopeSpans = []scopeSpans{scope}
	return json.Marshal(request{[]resourceSpans{from}})
}

func (s *Span) sent() sentSpan {
	made := sentSpan{
		TraceID: TraceID(s.Operation), SpanID: spanID(s.Operation, s.Name, s.Part), Name: s.Name, Kind: internalKind,
		Begun: nano(s.Begun), Ended: nano(s.Ended), Attributes: attributes(s.About),
	}
	if s.Ended.Before(s.Begun) { // clocks of two machines
		made.Ended = made.Begun
	}
	caller := spanID(s.Operation, "caller", "")
	switch {
	case s.Calls:
		made.SpanID, made.Kind = caller, clientKind
	case s.Name != "":
		made.ParentID = wholeID(s.Operation)
	default:
		made.Name = s.Kind
		if s.Called {
			made.ParentID = caller
		}
	}
	if s.Linked != "" {
		made.Links = []link{{TraceID(s.Linked), wholeID(s.Linked)}}
	}
	if s.Failed != "" {
		made.Status = &status{failedCode, s.Failed}
	}
	return made
}

func nano(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }
