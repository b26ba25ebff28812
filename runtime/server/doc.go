// Package server is the HTTP face of the runtime: it prepares a chat request,
// routes it, has it forwarded, and answers failures in one JSON envelope. It
// also serves models, health, metrics and the admin views.
//
// Everything that a plan decides hangs off one Generation behind an atomic
// pointer. A chat request takes the one in force when its body is complete and
// keeps it to its end, so a swap disturbs nobody.
//
// A 503 of /readyz has an error envelope with the code not_ready or draining, and
// its message names the models that have no healthy engine for some stage.
//
// Server and Meters are safe for concurrent use.
//
// The metrics, all in Prometheus text format:
//
//	shunt_requests_total{route,method}                        arrived
//	shunt_responses_total{route,method,status}                answered; 499 is a client that left
//	shunt_request_duration_seconds{model}                     dispatched requests, to their end
//	shunt_ttft_seconds{model}                                 streams, to the first event
//	shunt_engine_requests_total{model,engine,role,outcome}    success, client_error, backpressure, error, cancelled, shutdown
//	shunt_stream_outcome_total{model,engine,outcome}          ok, stream_error_event, upstream_error, client_disconnect, expired, shutdown
//	shunt_stale_requests_total{phase}                         before_head, streaming
//	shunt_aborts_total{reason,sent}                           requests given up on an engine
//	shunt_policy_decisions_total{stage,reason}                picks of dispatched requests
//	shunt_selection_failures_total{kind,stage}                requests that no bucket took
//	shunt_admission_rejections_total{limit}                   engines refused in buckets that were given up, also when a later one served
//	shunt_sampling_contract_rejections_total{param}           requests with a value that the model does not allow
//	shunt_tokenize_seconds{model}                             time to tokenize a prompt, waiting included
//	shunt_input_lengths_total{model,source}                   exact, rendered, estimate (a failure); models that tokenize
//	shunt_tokenize_failures_total{model,reason}                why there was only an estimate
//	shunt_input_ids_total{model,outcome}                      forwarded, or why not
//	shunt_panics_total                                        handlers that crashed
//	shunt_plan_swaps_total, shunt_plan_failures_total         reloads
//	shunt_plan_info{digest}                                   1 for the plan in force
//	shunt_ready                                               what /readyz says
//	shunt_engines{model,role}                                 engines known
//	shunt_engine_health{model,engine,role}                    1 if the breaker admits
//	shunt_engine_breaker_state{model,engine,role}             0 closed, 1 open, 2 half-open
//	shunt_engine_inflight_requests{model,engine,role}         held open by this router
//	shunt_load_report_age_seconds{model,engine,role}          age of the oldest rank's report; none without a report
//
// Engine series are computed when they are read, and those of engines that left
// the fleet vanish.
package server
