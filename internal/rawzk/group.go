package rawzk

import (
	"fmt"
	"strings"
)

// Auth adds an identity to the connection.
func Auth(scheme string, credentials []byte) Op {
	return Op{
		Code: OpAuth, Body: Join(Int(0), Str(scheme), Buf(credentials)),
		Text: fmt.Sprintf("auth %q %s", scheme, Quote(credentials)),
	}
}

// Multi returns a transaction: all parts are carried out or none.
func Multi(parts ...Op) Op { return multi(OpMulti, "multi", parts) }

// MultiRead returns a request with several reads.
func MultiRead(parts ...Op) Op { return multi(OpMultiRead, "multiRead", parts) }

func multi(code int32, name string, parts []Op) Op {
	texts := make([]string, len(parts))
	var body []byte
	for i, p := range parts {
		texts[i] = p.String()
		body = append(body, MultiPart(p)...)
	}
	return Op{Code: code, Body: append(body, MultiEnd()...), Text: name + " {" + strings.Join(texts, "; ") + "}"}
}

// MultiPart returns one part of a multi's body.
func MultiPart(o Op) []byte { return Join(Int(o.Code), Bool(false), Int(-1), o.Body) }

// MultiEnd returns the end of a multi's body.
func MultiEnd() []byte { return Join(Int(-1), Bool(true), Int(-1)) }

// SetWatches sets one-shot watches again, for a client that has seen everything up to zxid.
func SetWatches(zxid int64, data, exist, child []string) Op {
	return Op{
		Code: OpSetWatches, Body: Join(Long(zxid), Strs(data), Strs(exist), Strs(child)),
		Text: fmt.Sprintf("setWatches data=%q exist=%q child=%q", data, exist, child),
	}
}

// SetWatches2 is SetWatches with persistent and recursive watches.
func SetWatches2(zxid int64, data, exist, child, persistent, recursive []string) Op {
	return Op{
		Code: OpSetWatches2,
		Body: Join(Long(zxid), Strs(data), Strs(exist), Strs(child), Strs(persistent), Strs(recursive)),
		Text: fmt.Sprintf("setWatches2 data=%q exist=%q child=%q persistent=%q recursive=%q",
			data, exist, child, persistent, recursive),
	}
}

// Reconfig changes an ensemble's members.
func Reconfig(joining, leaving, members string, config int64) Op {
	return Op{
		Code: OpReconfig, Body: Join(Str(joining), Str(leaving), Str(members), Long(config)),
		Text: fmt.Sprintf("reconfig joining=%q leaving=%q members=%q from=%d", joining, leaving, members, config),
	}
}

// Sasl sends a token.
func Sasl(token []byte) Op {
	return Op{Code: OpSasl, Body: Buf(token), Text: "sasl " + Quote(token)}
}

// Quote formats data: null, a short text, or the start and the length of a long text.
func Quote(data []byte) string {
	const short = 64
	switch {
	case data == nil:
		return "null"
	case len(data) <= short:
		return fmt.Sprintf("%q", data)
	}
	return fmt.Sprintf("%q... (%d bytes, sum %d)", data[:16], len(data), sum(data))
}

// sum returns a hash, to tell long data apart.
func sum(data []byte) uint64 {
	var h uint64 = 14695981039346656037
	for _, b := range data {
		h = (h ^ uint64(b)) * 1099511628211
	}
	return h
}
