package tracing

import (
	"fmt"
	"net/url"
	"strings"
)

// The environment that programs of OpenTelemetry read. A program that runs for a moment, and for one person, has no configuration of its
// own for this.
const (
	offVariable      = "OTEL_SDK_DISABLED"
	exporterVariable = "OTEL_TRACES_EXPORTER"
	endpointVariable = "OTEL_EXPORTER_OTLP_ENDPOINT"
	tracesVariable   = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	caVariable       = "OTEL_EXPORTER_OTLP_CERTIFICATE"
	headersVariable  = "OTEL_EXPORTER_OTLP_HEADERS"
)

// FromEnvironment is what the environment says of traces, complete. Without a collector in it they are off.
func FromEnvironment(env func(string) string) (Config, error) {
	c := Config{Endpoint: env(tracesVariable), CAFile: env(caVariable)}
	if base := env(endpointVariable); c.Endpoint == "" && base != "" {
		c.Endpoint = strings.TrimSuffix(base, "/") + tracesPath
	}
	if strings.EqualFold(env(offVariable), "true") || env(exporterVariable) == "none" || c.Endpoint == "" {
		return Config{}, nil
	}
	for pair := range strings.SplitSeq(env(headersVariable), ",") {
		name, value, whole := strings.Cut(strings.TrimSpace(pair), "=")
		text, err := url.PathUnescape(strings.TrimSpace(value))
		switch {
		case pair == "":
			continue
		case !whole || err != nil:
			return Config{}, fmt.Errorf("%w: %s is no list like name=value,name=value", ErrConfig, headersVariable)
		}
		if c.headers == nil {
			c.headers = map[string]string{}
		}
		c.headers[strings.TrimSpace(name)] = text
	}
	return c, c.Complete()
}
