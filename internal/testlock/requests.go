package testlock

import (
	"strings"
	"testing/synctest"
	"time"

	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/proxy"
)

// Requests lists the requests of clients in virtual time.
type Requests struct {
	srv  *zktest.Server
	read int // number of trace entries already reported
}

// RequestsOn returns the requests on a server from now on.
func RequestsOn(srv *zktest.Server) *Requests {
	return &Requests{srv, len(srv.Trace().Entries)}
}

// Of returns the requests of a client since the last call, without heartbeats. What other clients
// have sent meanwhile is forgotten.
func (r *Requests) Of(client string) string {
	entries := r.srv.Trace().Entries
	var all []string
	for _, e := range entries[r.read:] {
		if e.Client == client && e.What != "event" && e.What != "sync" {
			all = append(all, e.What)
		}
	}
	r.read = len(entries)
	return strings.Join(all, " ")
}

// Settle waits until all running requests have ended.
func Settle() {
	time.Sleep(20 * time.Millisecond) // shorter than a hold lasts before it is watched
	synctest.Wait()
}

// Sent returns the number of requests through a proxy without heartbeats.
func Sent(p *proxy.Proxy) int {
	counts := p.Requests()
	return counts.Total() - counts[fault.OpSync]
}
