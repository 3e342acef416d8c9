package fault

import (
	"fmt"
	"time"

	"github.com/docent-zk/docent/zktest/internal/effect"
)

// Action is what a rule does with a request. The zero Action is [Pass].
type Action struct {
	effect effect.Effect
	code   string // describes effect.Code
}

// Pass lets the request continue. The rule only counts, and [Rule.Wait] waits for it. Rules that
// were added later still see the request.
func Pass() Action { return Action{} }

// DropBefore closes the connection, and the request is not carried out. Requests behind it on the
// connection are lost too.
func DropBefore() Action { return Action{effect: effect.Effect{Kind: effect.DropBefore}} }

// DropAfter lets the request be carried out or refused, and closes the connection instead of
// answering, so the client cannot tell which. Requests behind it on the connection may reach the
// server too.
func DropAfter() Action { return Action{effect: effect.Effect{Kind: effect.DropAfter}} }

// Delay lets the request continue after d. Everything behind it on its connection waits too.
//
// A server measures d by package time. Like a request in the real server's pipeline, the request is
// carried out even if its connection has ended in the meantime. It is not carried out if its
// session has ended or has a new connection, or if the server was stopped. One server does not
// carry out a request after later ones of its client. For requests that may come after later ones,
// use zktest.Follower.HoldRequests. A proxy does not pass the request on if the connection has
// ended in the meantime.
func Delay(d time.Duration) Action {
	return Action{effect: effect.Effect{Kind: effect.Hold, Delay: max(d, 0)}}
}

// Hold keeps the request, and everything behind it on its connection, until [Rule.Release] or
// [Rule.Remove]. Otherwise it is like [Delay].
func Hold() Action { return Action{effect: effect.Effect{Kind: effect.Hold, Delay: -1}} }

// Reset ends the client's connection with a TCP reset, and the request is not carried out. A server
// behind a proxy sees an ordinary end.
func Reset() Action { return Action{effect: effect.Effect{Kind: effect.Reset}} }

// Fail answers with an error, a zktest.Code, instead of carrying the request out. The connection
// stays open. Proxies cannot do this.
func Fail[C interface {
	~int32
	fmt.Stringer
}](code C) Action {
	return Action{effect: effect.Effect{Kind: effect.Fail, Code: int32(code)}, code: code.String()}
}

// Truncate carries the request out, sends the first n bytes of the answer with its length, and
// closes the connection. Proxies cannot do this.
func Truncate(n int) Action {
	return Action{effect: effect.Effect{Kind: effect.Truncate, Bytes: max(n, 0)}}
}

// Effect returns what a server or a proxy does.
func (a Action) Effect() effect.Effect { return a.effect }

// String returns a description for messages.
func (a Action) String() string {
	e := a.effect
	switch {
	case e.Kind == effect.Hold && e.Delay >= 0:
		return fmt.Sprintf("delay by %v", e.Delay)
	case e.Kind == effect.Fail:
		return "fail: " + a.code
	case e.Kind == effect.Truncate:
		return fmt.Sprintf("truncate at %d bytes", e.Bytes)
	}
	return names[e.Kind]
}

var names = map[effect.Kind]string{
	effect.Pass:       "pass",
	effect.DropBefore: "drop before",
	effect.DropAfter:  "drop after",
	effect.Hold:       "hold",
	effect.Reset:      "reset",
}
