package prepare

import (
	"net/http"
	"strings"
)

// The header names that the router itself writes, in canonical form.
const (
	RequestID = "X-Request-Id"
	// DecodeURL tells the engines of a pair where the decode engine is. It goes
	// to engines only.
	DecodeURL = "X-Sgl-Decode-Url"
)

// EngineHeader selects from a client's headers those that an engine may see, and
// adds what every engine request carries. The values are shared with in.
func EngineHeader(in http.Header, stream bool) http.Header {
	out := make(http.Header, 8)
	for name, values := range in {
		if forwarded(name) {
			out[name] = values
		}
	}
	out["Content-Type"] = []string{"application/json"}
	if stream {
		out["Accept"] = []string{"text/event-stream"}
	}
	// An absent name would make net/http send its own.
	out["User-Agent"] = nil
	return out
}

// forwarded reports whether a client's header, in canonical form, goes to the
// engine.
func forwarded(name string) bool {
	switch name {
	case "Authorization", RequestID, "X-Correlation-Id", "Traceparent", "Tracestate":
		return true
	case DecodeURL:
		return false
	}
	return strings.HasPrefix(name, "X-Request-Id-") || strings.HasPrefix(name, "X-Sgl-")
}

// Key is the value of a header that names a session or routing key: the first
// one, if it consists of visible ASCII characters and spaces. The empty name
// and a missing header give the empty key.
func Key(h http.Header, name string) string {
	if name == "" {
		return ""
	}
	v := h.Get(name)
	for i := range len(v) {
		if v[i] < ' ' || v[i] > '~' {
			return ""
		}
	}
	return v
}
