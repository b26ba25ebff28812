package enginetest

import (
	"fmt"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// wireFault is a Fault on the control endpoints; times are texts like "100ms".
type wireFault struct {
	Kind   FaultKind `json:"kind"`
	Path   string    `json:"path,omitzero"`
	After  int       `json:"after,omitzero"`
	Times  int       `json:"times,omitzero"`
	Status int       `json:"status,omitzero"`
	Body   string    `json:"body,omitzero"`
	Tokens int       `json:"tokens,omitzero"`
	Delay  string    `json:"delay,omitzero"`
	For    string    `json:"for,omitzero"`
}

// ParseFault reads the JSON form of a fault, the body of POST /_sim/fault.
func ParseFault(data []byte) (Fault, error) {
	var w wireFault
	if err := json.Unmarshal(data, &w, json.RejectUnknownMembers(true)); err != nil {
		return Fault{}, fmt.Errorf("enginetest: fault: %w", err)
	}
	f := Fault{
		Kind: w.Kind, Path: w.Path, After: w.After, Times: w.Times,
		Status: w.Status, Body: w.Body, Tokens: w.Tokens,
	}
	for _, d := range []struct {
		text string
		to   *time.Duration
	}{{w.Delay, &f.Delay}, {w.For, &f.For}} {
		if d.text == "" {
			continue
		}
		v, err := time.ParseDuration(d.text)
		if err != nil {
			return Fault{}, fmt.Errorf("enginetest: fault: %w", err)
		}
		*d.to = v
	}
	_, err := f.complete()
	return f, err
}

// postFault injects a fault.
func (e *Engine) postFault(w http.ResponseWriter, r *http.Request) {
	data, err := readAll(w, r)
	if err != nil {
		return
	}
	f, err := ParseFault(data)
	if err != nil {
		reply(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
		return
	}
	if f.Kind == Refuse {
		// This connection must not be reused once the listener is gone, and
		// its own answer has to leave first.
		w.Header().Set("Connection", "close")
	}
	if err := e.Inject(f); err != nil {
		reply(w, http.StatusConflict, map[string]string{"error": err.Error()})
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// getFaults lists the faults that may still strike.
func (e *Engine) getFaults(w http.ResponseWriter, _ *http.Request) {
	out := []wireFault{}
	for _, f := range e.faults.snapshot() {
		out = append(out, wireFault{
			Kind: f.Kind, Path: f.Path, After: f.After, Times: f.Times, Status: f.Status,
			Body: f.Body, Tokens: f.Tokens, Delay: f.Delay.String(),
		})
	}
	reply(w, http.StatusOK, out)
}

// deleteFaults removes all faults.
func (e *Engine) deleteFaults(w http.ResponseWriter, _ *http.Request) {
	if err := e.ClearFaults(); err != nil {
		reply(w, http.StatusConflict, map[string]string{"error": err.Error()})
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// wireRecord is a Request on the control endpoint.
type wireRecord struct {
	Seq     int         `json:"seq"`
	Method  string      `json:"method"`
	Path    string      `json:"path"`
	Header  http.Header `json:"header"`
	Body    string      `json:"body"`
	RID     string      `json:"rid"`
	Room    *int64      `json:"bootstrap_room"`
	Outcome Outcome     `json:"outcome"`
	Status  int         `json:"status"`
	Tokens  int         `json:"tokens"`
}

// getRequests returns what the engine received.
func (e *Engine) getRequests(w http.ResponseWriter, _ *http.Request) {
	out := struct {
		Requests []wireRecord `json:"requests"`
		Aborted  []string     `json:"aborted_rids"`
	}{Requests: []wireRecord{}, Aborted: e.AbortedRIDs()}
	for _, r := range e.Requests() {
		rec := wireRecord{
			Seq: r.Seq, Method: r.Method, Path: r.Path, Header: r.Header, Body: string(r.Body),
			RID: r.RID, Outcome: r.Outcome, Status: r.Status, Tokens: r.Tokens,
		}
		if r.HasRoom {
			rec.Room = &r.Room
		}
		out.Requests = append(out.Requests, rec)
	}
	reply(w, http.StatusOK, out)
}

// getState returns the engine's counters.
func (e *Engine) getState(w http.ResponseWriter, _ *http.Request) {
	s := e.State()
	reply(w, http.StatusOK, map[string]any{
		"id": e.opts.ID, "role": e.opts.Role, "rooms": e.Rooms(), "idle": s.Idle(),
		"bootstrapping": s.Bootstrapping, "waiting": s.Waiting, "running": s.Running,
		"used_tokens": s.UsedTokens, "received": s.Received, "completed": s.Completed,
		"rejected": s.Rejected, "failed": s.Failed, "cancelled": s.Cancelled,
		"aborted": s.Aborted, "faulted": s.Faulted,
		"prompt_tokens": s.PromptTokens, "cached_tokens": s.CachedTokens, "cached_blocks": e.CachedBlocks(), "generated_tokens": s.GeneratedTokens,
	})
}

// postCache stops or restarts the prefix cache and its sockets.
func (e *Engine) postCache(w http.ResponseWriter, r *http.Request) {
	data, err := readAll(w, r)
	if err != nil {
		return
	}
	in := struct {
		Action    string `json:"action"`
		BlockSize int    `json:"block_size"`
		Ranks     int    `json:"ranks"`
	}{BlockSize: e.opts.BlockSize, Ranks: e.opts.Ranks}
	if err := json.Unmarshal(data, &in, json.RejectUnknownMembers(true)); err != nil {
		reply(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
		return
	}
	switch in.Action {
	case "stop":
		e.StopCache()
	case "restart":
		if err := e.RestartCache(in.BlockSize, in.Ranks); err != nil {
			reply(w, http.StatusConflict, map[string]string{"error": err.Error()})
			return
		}
	default:
		reply(w, http.StatusBadRequest, map[string]string{"error": "action: want stop or restart"})
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// reply writes a JSON document. Bodies that are not UTF-8 are shown as far as
// JSON can.
func reply(w http.ResponseWriter, status int, v any) {
	data, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n')) // a client that left needs no answer
}
