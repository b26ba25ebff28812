// Package plandiff says how two plans differ in what they do: which requests go
// elsewhere, which engines moved, which policies, limits and times changed.
//
// Requests are compared exactly. The buckets that a request is offered depend on
// two numbers, its input and its expected peak; an unknown peak counts as the
// input, and a known one is never below it. The routes of a difference are the
// rectangles of those two numbers in which the ordered buckets differ, no more
// and no less. A bucket that was renamed counts as the same bucket. A
// latency target reorders buckets by their estimates, so targets only matter
// between two estimates: a route for which they matter is the rectangle of the
// targets, too, in which the order differs, and one for which they do not holds for
// all of them. Targets that are refused, such as 0, are not compared. Where a length
// has very many buckets, routes say that orders with targets were not compared.
//
// Every change has a class. Breaking: requests that were served are refused
// whatever the load, or clients have to change something. Behaviour: requests
// are served elsewhere, in another order, or under other limits or times.
// Cosmetic: nothing about requests changes.
//
// The functions are pure and change nothing that they are given.
package plandiff
