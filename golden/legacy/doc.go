// Package legacy is the engine selection of the router that configurations are
// migrated from: which buckets a request fits and in which order, which engines
// a bucket has, which engine a policy may pick among them, and what replaces a
// refused one.
//
// A selection is the set of engines that may be picked, since some picks are
// random. The facts about that router leave open what exactly replaces a refused
// engine; a Router takes any of the bucket that is not refused, by load. Its
// deliberate changes can be put in force one by one, so that a difference can be
// traced to those that cause it.
//
// It is written from the facts about that router and shares no code with the
// runtime, so that the two can be compared. It is slow, plain and only for
// tests; its values are safe for concurrent use because nothing changes them,
// except a Router, which belongs to one goroutine.
package legacy
