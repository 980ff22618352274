// Package rpc is how Berth's programs speak: Connect over HTTP/2 and TLS, the same server and client settings
// everywhere, errors that carry a stable code and the next step, and the caller's identity from its certificate.
package rpc
