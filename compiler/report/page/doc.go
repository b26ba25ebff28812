// Package page writes a plan, or what changed between two, as one HTML page for
// people who review it.
//
// A page is a file of its own: its style and its script are in it, it asks the
// network for nothing, and a policy in its head forbids that it ever does. All
// text from plans is escaped by html/template, and anchors are numbers and never
// names. Without its script a page shows everything it has; the script adds the
// search, the question "what does a request of this length try", and printing
// with everything unfolded.
//
// The same plan gives the same bytes. All functions only read their arguments
// and are safe for concurrent use.
package page
