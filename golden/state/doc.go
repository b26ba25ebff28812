// Package state holds the fault tests of the shared state: routers, engines, index
// servers and Redis as they really run, of which parts die, restart, flood and
// change while requests go on. There is no code besides the tests.
package state
