// Package app is one shuntd process as a library: it loads the plan, builds the
// shared state once, serves, and drains on a signal.
//
// The shared state is one load table and one feed of reports for each model that
// reads them, one prefix index or one client of a remote one, one store of
// bindings, and one tokenizer for each path. A reload keeps what the new plan goes
// on needing; what cannot change in place is refused. Index serves the prefix
// index alone, for several routers.
//
// Besides the metrics of server and of the feeds there are:
//
//	shunt_cache_decisions_total{model,decision}       hit, miss, queued, saturated, unavailable
//	shunt_cache_admission_evaluated_total{model}      holders that admission was asked about
//	shunt_cache_admission_refused_total{model}        those that it refused
//	shunt_cache_guard_compared_total{model}           pairs that the pressure guard looked at
//	shunt_cache_guard_overruled_total{model}          those in which it overruled the cache
//	shunt_prefix_lookups_total{model,outcome}         matched, empty, rejected, or why nothing was answered
//	shunt_prefix_lookup_seconds{model}                time of a lookup, hashing included
//	shunt_prefix_index_{blocks,bytes,evicted_blocks,orphan_chains}  of the index that all models share
//	shunt_affinity_total{outcome}                     what the store was asked and did
//	shunt_affinity_bindings                           bindings held in memory
//	shunt_affinity_down                               1 while Redis is not asked
//	shunt_load_tracked_engines                        engines with a report or an expectation of one
//
// Run blocks; every goroutine that it starts has ended when it returns. Only
// cmd/shuntd and tests import it.
package app
