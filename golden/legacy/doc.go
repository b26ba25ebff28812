// Package legacy is the engine selection of the router that configurations are
// migrated from, as far as a migration promises to keep it: which buckets a
// request fits and in which order, which engines a bucket has, and which engine
// a policy may pick among them.
//
// It is written from the facts about that router and shares no code with the
// runtime, so that the two can be compared. It is slow, plain and only for
// tests; its values are safe for concurrent use because nothing changes them,
// except a Cursor.
package legacy
