// Package doctor examines the servers of a client and the locks on them, for the command docent
// doctor.
package doctor

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/docent-zk/docent/framework"
)

// Result is the result of a check.
type Result string

// The results.
const (
	OK   Result = "ok"
	Warn Result = "warn" // it works, but something should be changed
	Fail Result = "fail"
	Skip Result = "skip" // not checked
)

// Finding is what a check has found.
type Finding struct {
	Check  string   `json:"check"`
	Result Result   `json:"result"`
	Found  string   `json:"found"`
	Advice string   `json:"advice,omitempty"` // what to do
	Paths  []string `json:"paths,omitempty"`  // of what it has found, at most maxPaths
}

// Config is what is examined, and how. All fields are needed unless they say otherwise.
type Config struct {
	Client  *framework.Client
	Timeout time.Duration // the session timeout that the client asks for

	Servers []string // host:port
	Dial    func(ctx context.Context, network, address string) (net.Conn, error)
	TLS     *tls.Config // nil: connections are in the clear
	// Resolve returns the addresses of a host. If it is nil, Servers are addresses.
	Resolve func(ctx context.Context, host string) ([]string, error)

	Root     string        // locks at and below it are examined
	MaxNodes int           // how many nodes are read below Root at most
	Samples  int           // how often a duration is measured
	Patience time.Duration // how long servers have for an answer
	// Write is the path of a temporary node, which must not exist. "" is none: then the checks that need
	// one are skipped, and nothing is written.
	Write string
}

// examination is one run of all checks.
type examination struct {
	Config
	report func(Finding)
}

// Examine runs all checks, and calls report with each finding. When ctx ends, the remaining checks
// fail at once.
//
// Sessions are opened and closed: one at each server, one that moves from server to server, and two
// for the bounds of session timeouts. Nothing else is changed without Write. With Write, a node at that
// path is created and deleted, several times.
func Examine(ctx context.Context, cfg Config, report func(Finding)) {
	e := &examination{cfg, report}
	e.servers(ctx)
	if !e.connection(ctx) {
		return
	}
	e.latency(ctx)
	e.features(ctx)
	e.clock(ctx)
	e.ttl(ctx)
	e.tree(ctx)
}

func (e *examination) ok(check, found string) {
	e.report(Finding{Check: check, Result: OK, Found: found})
}

func (e *examination) warn(check, found, advice string) {
	e.report(Finding{Check: check, Result: Warn, Found: found, Advice: advice})
}

func (e *examination) fail(check, found, advice string) {
	e.report(Finding{Check: check, Result: Fail, Found: found, Advice: advice})
}

func (e *examination) skip(check, found, advice string) {
	e.report(Finding{Check: check, Result: Skip, Found: found, Advice: advice})
}

// patience returns a context for requests that servers have Patience to answer.
func (e *examination) patience(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, e.Patience)
}

// round returns a duration with two or three digits, for people.
func round(d time.Duration) time.Duration {
	switch {
	case d >= 10*time.Second:
		return d.Round(time.Second)
	case d >= 100*time.Millisecond:
		return d.Round(10 * time.Millisecond)
	case d >= time.Millisecond:
		return d.Round(100 * time.Microsecond)
	}
	return d.Round(time.Microsecond)
}
