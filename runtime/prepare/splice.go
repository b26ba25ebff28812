package prepare

import "strconv"

// Slack is the spare capacity behind a body that lets Outgoing append in place
// instead of copying the body.
const Slack = 512

// Fields are the members that the router adds to a body. The zero Fields adds
// nothing.
type Fields struct {
	// RID names the request on the engine; empty adds none. It consists of
	// characters that JSON does not escape.
	RID string
	// Bootstrap pairs the engines of a prefill/decode request.
	Bootstrap *Bootstrap
	// InputIDs are the prompt's token ids, for the engine to use as they are.
	InputIDs []uint32
}

// none reports whether there is nothing to add.
func (f Fields) none() bool { return f.RID == "" && f.Bootstrap == nil && len(f.InputIDs) == 0 }

// Bootstrap says where the decode engine fetches the prompt's KV cache.
type Bootstrap struct {
	// Host is the prefill engine's host name, IPv6 in brackets. It consists of
	// characters that JSON does not escape.
	Host string
	// Port 0 is unknown, which engines read as null.
	Port int
	// Room is the pair's meeting point, below 1<<63.
	Room uint64
}

// Outgoing is the body for the engines: the client's bytes without its copies of
// router-owned members, and with the router's own at the end. With nothing to
// cut or add it is the body itself; with nothing to cut it is written over the
// tail of the body if the capacity allows. What Sample adds stands behind a
// client's null of the same name, and engines take the last. A parsed Request
// gives one outgoing body, and nobody may change it.
func (r *Request) Outgoing(f Fields) []byte {
	if len(r.cuts) == 0 && len(r.defaults) == 0 && f.none() {
		return r.body
	}
	dst := r.body[:r.end]
	size := len(r.defaults) + f.size()
	if len(r.cuts) > 0 || cap(r.body)-r.end < size {
		dst = r.kept(size)
	}
	comma := r.members > 0
	if len(r.defaults) > 0 {
		from := 0
		if !comma {
			from = 1
		}
		dst = append(dst, r.defaults[from:]...)
		comma = true
	}
	add := func(name string) {
		if comma {
			dst = append(dst, ',')
		}
		comma = true
		dst = append(append(dst, '"'), name...)
		dst = append(dst, '"', ':')
	}
	if f.RID != "" {
		add("rid")
		dst = appendPlain(dst, f.RID)
	}
	if b := f.Bootstrap; b != nil {
		add("bootstrap_host")
		dst = appendPlain(dst, b.Host)
		add("bootstrap_port")
		if b.Port == 0 {
			dst = append(dst, "null"...)
		} else {
			dst = strconv.AppendInt(dst, int64(b.Port), 10)
		}
		add("bootstrap_room")
		dst = strconv.AppendUint(dst, b.Room, 10)
	}
	if len(f.InputIDs) > 0 {
		add("input_ids")
		dst = appendIDs(dst, f.InputIDs)
	}
	return append(dst, '}')
}

// size bounds the bytes that the fields and the closing brace take.
func (f Fields) size() int {
	n := 1 + len(`,"rid":""`) + len(f.RID)
	if f.Bootstrap != nil {
		n += len(`,"bootstrap_host":"","bootstrap_port":,"bootstrap_room":`) + len(f.Bootstrap.Host) + 2*20
	}
	if ids := len(f.InputIDs); ids > 0 {
		n += len(`,"input_ids":[]`) + ids*len("4294967295,")
	}
	return n
}

func appendIDs(dst []byte, ids []uint32) []byte {
	dst = append(dst, '[')
	for i, id := range ids {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendUint(dst, uint64(id), 10)
	}
	return append(dst, ']')
}

// kept copies the body up to its closing brace without what is cut.
func (r *Request) kept(extra int) []byte {
	n := r.end
	for _, c := range r.cuts {
		n -= c.to - c.from
	}
	dst := make([]byte, 0, n+extra)
	from := 0
	for _, c := range r.cuts {
		dst = append(dst, r.body[from:c.from]...)
		from = c.to
	}
	return append(dst, r.body[from:r.end]...)
}

func appendPlain(dst []byte, s string) []byte {
	return append(append(append(dst, '"'), s...), '"')
}
