package proxy

import (
	"fmt"

	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/internal/effect"
)

// On adds a rule. It fires for the first m.Times matching requests after m.Skip of them. Rules are
// tried in the order in which they were added. The first that fires decides, and later rules do not
// see the request unless the action is [fault.Pass]. On panics if the rule can never fire. Such
// rules have a negative number, a malformed pattern, a path without a leading /, or a path with a
// type that has none. Others have a type that clients do not send. On also panics if the rule is
// not for proxies: if it names a client or the handshake, or is [fault.Fail] or [fault.Truncate].
func (p *Proxy) On(m fault.Match, a fault.Action) *fault.Rule {
	kind := a.Effect().Kind
	if m.Client != "" || m.Op == fault.OpConnect || kind == effect.Fail || kind == effect.Truncate {
		panic(fmt.Sprintf("proxy: match %v: %v: want a rule without client and handshake, "+
			"which neither fails nor truncates", m, a))
	}
	return p.rules.Add(m, a)
}
