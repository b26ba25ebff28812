package check

import (
	"fmt"
	"strings"

	"shunt/compiler/config"
	"shunt/compiler/diag"
)

// ruleHeaders judges the headers that carry affinity keys.
func ruleHeaders(r *rules) {
	for i := range r.models {
		m := &r.models[i]
		if !r.intact(m.at) {
			continue
		}
		session := headerAt{"session_id_header", sessionAware, m.Affinity.SessionID, config.DefaultSessionHeader}
		routing := headerAt{"routing_key_header", sticky, m.Affinity.RoutingKey, config.DefaultRoutingKeyHeader}
		read := 0
		for _, h := range [...]headerAt{session, routing} {
			if m.runs(h.policy) {
				r.header(m, h)
				read++
			}
		}
		if read == 2 && strings.EqualFold(session.name(), routing.name()) {
			at := routing
			if at.written == nil {
				at = session
			}
			r.add(diag.SharedHeader, m.at+"/affinity/"+at.field, fmt.Sprintf("session_aware and sticky both bind by the header %s", strings.ToLower(at.name()))).
				Hint = "give session_id_header and routing_key_header two names"
		}
	}
}

// headerAt is a header that carries a key for policies of a type.
type headerAt struct {
	field, policy string
	written       *string
	def           string
}

func (h headerAt) name() string { return config.Or(h.written, h.def) }

func (r *rules) header(m *modelAt, h headerAt) {
	if h.written == nil {
		for _, p := range m.policies() {
			if p.Type == h.policy {
				r.add(diag.DefaultHeader, p.at+"/type", fmt.Sprintf("%s binds by the header %s, because the model names no %s", h.policy, h.def, h.field)).
					Hint = fmt.Sprintf("write affinity: {%s: %s} if that is meant", h.field, h.def)
				return // once for each model
			}
		}
		return
	}
	const own = "use a header of your own, such as x-session-id"
	path, name := m.at+"/affinity/"+h.field, strings.ToLower(*h.written)
	switch name {
	case "connection", "keep-alive", "proxy-connection", "proxy-authenticate", "te", "trailer", "transfer-encoding", "upgrade", "http2-settings":
		r.add(diag.LostHeader, path, fmt.Sprintf("%s is a hop-by-hop header, which proxies remove", name)).Hint = own
	case "authorization", "proxy-authorization", "cookie", "x-api-key", "api-key", "x-auth-token", "x-amz-security-token":
		r.add(diag.CredentialHeader, path, fmt.Sprintf("%s carries a credential, which is no name of a session", name)).Hint = own
	case "x-request-id", "request-id", "traceparent", "x-b3-traceid", "x-b3-spanid", "x-amzn-trace-id", "idempotency-key", "date":
		r.add(diag.NoKeyHeader, path, fmt.Sprintf("%s is another one for each request, so no binding is found again", name)).Hint = own
	case "host", "content-type", "content-length", "content-encoding", "accept", "accept-encoding", "accept-language", "user-agent", "x-forwarded-proto", "x-forwarded-host", "via":
		r.add(diag.NoKeyHeader, path, fmt.Sprintf("%s is mostly the same for all requests, so one engine gets them all", name)).Hint = own
	default:
		if strings.Contains(name, "_") {
			r.add(diag.LostHeader, path, fmt.Sprintf("%s has an underscore, and common proxies drop such headers", name)).
				Hint = fmt.Sprintf("name it %s", strings.ReplaceAll(name, "_", "-"))
		}
	}
}
