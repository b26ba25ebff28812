// Package clients holds the official OpenAI client for Go against a running
// router. It is a module of its own, so that the product does not depend on the
// client. The tests skip themselves without SHUNT_URL; make e2e-clients runs
// them.
package clients
