package doctor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"strings"
	"sync"
	"time"
)

// peer is one server.
type peer struct {
	name, host, address string
	reply               session
	took                time.Duration
	err                 error
}

// servers checks that each server answers alone, that all are of one ensemble, and which session
// timeouts they grant.
func (e *examination) servers(ctx context.Context) {
	peers := e.peers(ctx)
	e.knock(ctx, peers)
	var writable []*peer
	for _, p := range peers {
		if p.err == nil && !p.reply.readOnly {
			writable = append(writable, p)
		}
	}
	strangers := map[*peer]error{}
	if len(writable) > 0 {
		strangers = e.strangers(ctx, writable)
	}
	for _, p := range peers {
		e.server(p, strangers[p], writable)
	}
	if len(writable) > 0 {
		e.timeout(ctx, writable[0])
		e.sameTimeout(writable)
	}
}

// peers returns the servers. A host with several addresses is several servers.
func (e *examination) peers(ctx context.Context) (all []*peer) {
	for _, server := range e.Servers {
		host, port, err := net.SplitHostPort(server)
		if e.Resolve == nil || err != nil {
			all = append(all, &peer{name: server, host: host, address: server})
			continue
		}
		within, cancel := e.patience(ctx)
		addresses, err := e.Resolve(within, host)
		cancel()
		if err != nil {
			all = append(all, &peer{name: server, err: err})
			continue
		}
		for _, address := range addresses {
			p := &peer{name: server, host: host, address: net.JoinHostPort(address, port)}
			if p.address != server {
				p.name += " (" + address + ")"
			}
			all = append(all, p)
		}
	}
	return all
}

// knock opens and closes a session at each server, at the same time.
func (e *examination) knock(ctx context.Context, peers []*peer) {
	within, cancel := e.patience(ctx)
	defer cancel()
	var running sync.WaitGroup
	for _, p := range peers {
		if p.err != nil {
			continue
		}
		running.Go(func() {
			l, err := e.open(within, p, session{timeout: milliseconds(e.Timeout)})
			if err != nil {
				p.err = err
				return
			}
			p.reply, p.took = l.session, l.took
			l.end()
		})
	}
	running.Wait()
}

func milliseconds(d time.Duration) int32 { return int32(min(d.Milliseconds(), math.MaxInt32)) }

// strangers returns the servers that do not know a session of the first one. Servers of one ensemble
// have the same sessions, and ask their leader about a session that they do not know.
func (e *examination) strangers(ctx context.Context, peers []*peer) map[*peer]error {
	all := map[*peer]error{}
	within, cancel := e.patience(ctx)
	defer cancel()
	last, err := e.open(within, peers[0], session{timeout: milliseconds(e.Timeout)})
	if err != nil {
		all[peers[0]] = err
		return all
	}
	known := last.session
	for _, p := range peers[1:] {
		l, err := e.open(within, p, known)
		switch {
		case err != nil:
			all[p] = err
		case l.timeout == 0:
			all[p] = fmt.Errorf("it does not know a session of %s: it belongs to another ensemble", peers[0].name)
			l.drop()
		default:
			last.drop()
			last = l
		}
	}
	last.end()
	return all
}

const (
	startAdvice    = "start the server, or remove it from the connection string"
	noReplyAdvice  = "see whether it is a ZooKeeper server, has a quorum, and wants TLS"
	readOnlyAdvice = "it has lost the other servers: see whether they run, and whether it can reach them"
	strangerAdvice = "name only servers of one ensemble in the connection string: a lock on one excludes nothing " +
		"on the other"
	boundsAdvice = "give all servers the same minSessionTimeout and maxSessionTimeout: a session may end before " +
		"the client knows that its timeout is shorter"
)

// server reports one server.
func (e *examination) server(p *peer, stranger error, writable []*peer) {
	const check = "server"
	switch {
	case errors.Is(p.err, errNoReply):
		e.fail(check, p.name+": "+p.err.Error(), noReplyAdvice)
	case p.err != nil:
		e.fail(check, p.name+": "+p.err.Error(), startAdvice)
	case p.reply.readOnly:
		e.fail(check, p.name+": it is read-only", readOnlyAdvice)
	case stranger != nil && errors.Is(stranger, errNoReply):
		e.fail(check, p.name+": "+stranger.Error(), noReplyAdvice)
	case stranger != nil:
		e.fail(check, p.name+": "+stranger.Error(), strangerAdvice)
	case p == writable[0]:
		e.ok(check, fmt.Sprintf("%s: opens a session, in %v", p.name, round(p.took)))
	default:
		e.ok(check, fmt.Sprintf("%s: opens a session, in %v, and knows those of %s",
			p.name, round(p.took), writable[0].name))
	}
}

// timeoutCheck is the name of the checks of session timeouts.
const timeoutCheck = "session timeout"

// timeout checks the session timeout that a server grants. Its bounds are those of the answers to the
// smallest and to the largest number.
func (e *examination) timeout(ctx context.Context, p *peer) {
	within, cancel := e.patience(ctx)
	defer cancel()
	var bounds [2]time.Duration
	for i, ask := range []int32{0, math.MaxInt32} {
		l, err := e.open(within, p, session{timeout: ask})
		if err != nil {
			e.fail(timeoutCheck, p.name+": "+err.Error(), noReplyAdvice)
			return
		}
		bounds[i] = l.session.granted()
		l.end()
	}
	e.granted(p.reply.granted(), bounds[0], bounds[1])
}

// sameTimeout reports servers that grant another session timeout than the first one.
func (e *examination) sameTimeout(peers []*peer) {
	first := peers[0]
	for _, p := range peers[1:] {
		if p.reply.timeout != first.reply.timeout {
			e.fail(timeoutCheck, fmt.Sprintf("%s grants %v, and %s grants %v",
				first.name, first.reply.granted(), p.name, p.reply.granted()), boundsAdvice)
		}
	}
}

// granted reports a session timeout that the servers grant, and its bounds.
func (e *examination) granted(granted, least, most time.Duration) {
	text := fmt.Sprintf("%v is granted; the servers grant %v to %v", granted, least, most)
	tick := least / 2 // unless the servers set minSessionTimeout
	advice := fmt.Sprintf("ask for eight ticks of the servers or more: %v, if minSessionTimeout is two ticks", 8*tick)
	switch {
	case granted < 4*tick:
		e.fail(timeoutCheck, text+": less than four ticks", advice)
	case granted != e.Timeout:
		e.warn(timeoutCheck, fmt.Sprintf("%v is asked for, ", e.Timeout)+text,
			"ask for a timeout within the bounds, or set minSessionTimeout and maxSessionTimeout of the servers")
	case granted < 8*tick:
		e.warn(timeoutCheck, text+": less than eight ticks", advice)
	default:
		e.ok(timeoutCheck, text)
	}
}

// hostPort returns a server with its port, which is 2181 unless it is given.
func hostPort(server string) string {
	if _, _, err := net.SplitHostPort(server); err == nil {
		return server
	}
	return net.JoinHostPort(strings.Trim(server, "[]"), "2181")
}

// ServersOf returns the servers of a connection string that is valid.
func ServersOf(connect string) (servers []string) {
	connect, _, _ = strings.Cut(connect, "/")
	for server := range strings.SplitSeq(connect, ",") {
		servers = append(servers, hostPort(strings.Trim(server, " ")))
	}
	return servers
}
