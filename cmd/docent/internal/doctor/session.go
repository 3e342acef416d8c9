package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
)

// connection checks that the client connects. It reports whether it does.
func (e *examination) connection(ctx context.Context) bool {
	const check = "connection"
	within, cancel := e.patience(ctx)
	defer cancel()
	s, err := e.Client.Session(within)
	switch {
	case err == nil:
		e.ok(check, fmt.Sprintf("session 0x%x at %s", s.ID(), e.Client.Server()))
		return true
	case errors.Is(err, framework.ErrAuthFailed):
		e.fail(check, err.Error(), "see the credentials: --digest-file")
	default:
		e.fail(check, err.Error(), "see the servers above, and the flags for TLS")
	}
	return false
}

// latency measures how long the servers take for a transaction.
func (e *examination) latency(ctx context.Context) {
	const check = "latency"
	took := make([]time.Duration, 0, e.Samples)
	for range e.Samples {
		within, cancel := e.patience(ctx)
		sent := time.Now()
		err := e.Client.Sync(within, e.Root)
		cancel()
		if err != nil {
			e.fail(check, err.Error(), "see whether the servers have a quorum")
			return
		}
		took = append(took, time.Since(sent))
	}
	slices.Sort(took)
	most := took[len(took)-1]
	median := took[len(took)/2]
	text := fmt.Sprintf("a transaction takes %v (median) to %v (maximum of %d)", round(median), round(most), len(took))
	if limit := e.sessionTimeout(ctx) / 6; most > limit {
		e.warn(check, text, fmt.Sprintf("look at the disks, the memory and the network of the servers: clients leave "+
			"a server that delays an answer for %v, a sixth of the session timeout", round(limit)))
		return
	}
	e.ok(check, text)
}

// sessionTimeout returns the timeout that the servers have granted.
func (e *examination) sessionTimeout(ctx context.Context) time.Duration {
	if s, err := e.Client.Session(ctx); err == nil {
		return s.Timeout()
	}
	return e.Timeout
}

// features checks what servers before 3.6 do not know.
func (e *examination) features(ctx context.Context) {
	const check = "features"
	within, cancel := e.patience(ctx)
	defer cancel()
	w, err := e.Client.AddWatch(within, e.Root, framework.WatchNode, func(framework.WatchEvent) {})
	switch {
	case errors.Is(err, framework.ErrUnimplemented):
		e.warn(check, e.Client.Server()+" is older than 3.6: no persistent watches, and no reads of many nodes in one "+
			"request; before 3.5 no containers",
			"upgrade the servers: without persistent watches packages cache and others read more")
	case err != nil:
		e.fail(check, err.Error(), "see whether the servers answer")
	default:
		w.Stop()
		e.ok(check, e.Client.Server()+" is 3.6 or later: containers, persistent watches, reads of many nodes in one "+
			"request")
	}
}

// needsWrite says why a check was skipped.
const needsWrite = "give a path to --write"

// clock compares the clock of this machine with that of the ZooKeeper leader, which is in the times of
// nodes that it creates.
func (e *examination) clock(ctx context.Context) {
	const check = "clock"
	if e.Write == "" {
		e.skip(check, "only a node that is created shows the servers' clock", needsWrite)
		return
	}
	within, cancel := e.patience(ctx)
	defer cancel()
	s, err := e.Client.Session(within)
	if err != nil {
		e.fail(check, err.Error(), "see whether the servers answer")
		return
	}
	// The servers' clock is ahead by at least, and at most, so much.
	least, most := time.Duration(-1<<62), time.Duration(1<<62)
	for range e.Samples {
		from, to, err := e.offset(within, s)
		if err != nil {
			e.writeFailed(check, err)
			return
		}
		least, most = max(least, from), min(most, to)
	}
	e.offsetFound(least, most)
}

// offset returns bounds of how far the clock of the ZooKeeper leader is ahead. It creates and deletes
// an ephemeral node.
func (e *examination) offset(ctx context.Context, s *framework.Session) (least, most time.Duration, err error) {
	sent := time.Now().Round(0) // the wall clock
	if _, err := s.Create(ctx, e.Write, nil, framework.Ephemeral()); err != nil {
		return 0, 0, err
	}
	answered := time.Now().Round(0)
	stat, err := s.Exists(ctx, e.Write)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return 0, 0, fmt.Errorf("%s: another client has deleted it", e.Write)
	case err != nil:
		return 0, 0, err
	}
	created := time.UnixMilli(stat.Ctime) // cut off to a millisecond
	return created.Sub(answered), created.Add(time.Millisecond).Sub(sent), s.Delete(ctx, e.Write, stat.Version)
}

// tolerance is how far clocks may differ before that is a warning.
const tolerance = time.Second

// offsetFound reports the bounds of how far the servers' clock is ahead.
func (e *examination) offsetFound(least, most time.Duration) {
	const check = "clock"
	if least > most {
		least, most = most, least // a clock was set meanwhile
	}
	off, within := round((least+most)/2), round((most-least)/2)
	text := fmt.Sprintf("that of the servers is ahead by %v, ± %v", off, within)
	if off < 0 {
		text = fmt.Sprintf("that of the servers is behind by %v, ± %v", -off, within)
	}
	if least > tolerance || most < -tolerance {
		e.warn(check, text, "synchronize the clocks, as with NTP: locks do not depend on them, but the ages that "+
			"docent and other tools show do")
		return
	}
	e.ok(check, text)
}

// writeFailed reports the failure of a check that creates the node Write.
func (e *examination) writeFailed(check string, err error) {
	advice := "see whether the servers answer"
	switch {
	case errors.Is(err, zk.ErrNodeExists):
		advice = "give another path to --write, of a node that does not exist"
	case errors.Is(err, zk.ErrNoNode):
		advice = "give a path to --write whose parent exists"
	case errors.Is(err, zk.ErrNoAuth):
		advice = "give a path to --write where the credentials allow a node to be created and deleted"
	}
	e.fail(check, err.Error(), advice)
}

// timeToLive is that of the temporary node. If it cannot be deleted, the servers delete it later.
const timeToLive = time.Minute

// ttl checks whether nodes can have a time to live.
func (e *examination) ttl(ctx context.Context) {
	const check = "ttl nodes"
	if e.Write == "" {
		e.skip(check, "only a node that is created shows whether the servers have them", needsWrite)
		return
	}
	within, cancel := e.patience(ctx)
	defer cancel()
	_, err := e.Client.Create(within, e.Write, nil, framework.TTL(timeToLive))
	switch {
	case errors.Is(err, framework.ErrUnimplemented):
		e.warn(check, "the servers have none", "set extendedTypesEnabled=true on all servers if programs use "+
			"framework.TTL or persistent.WithTTL")
		return
	case err != nil:
		e.writeFailed(check, err)
		return
	}
	if err := e.Client.Delete(within, e.Write, 0); err != nil {
		e.fail(check, err.Error(), fmt.Sprintf("the servers delete %s in %v or later", e.Write, timeToLive))
		return
	}
	e.ok(check, "the servers have them")
}
