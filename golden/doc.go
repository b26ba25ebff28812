// Package golden holds what the whole project promises as data: txtar cases of
// findings, plans and decisions, the vectors of the decision core, and the test
// of the import order.
//
// The package itself is the harness of the txtar cases and a leaf; only its
// tests import the rest. A Case belongs to one test.
package golden
