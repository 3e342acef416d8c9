package cache

import (
	"bytes"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
)

const (
	maxReads    = 128     // under way
	maxTogether = 64      // in one request
	maxBytes    = 1 << 20 // in the answer to one request, as far as is known
	smallData   = 1 << 10 // so much data is read instead of the Stat alone, if that saves a request
)

// read is a read of a job.
type read struct {
	*job
	kind bridge.ReadKind
}

// answer is the answer to a read.
type answer struct {
	kind     bridge.ReadKind
	data     []byte
	children []string
	stat     *zk.Stat
	err      error
}

// wantRead has a job make a read.
func (f *follower) wantRead(j *job, kind bridge.ReadKind) { f.next = append(f.next, read{j, kind}) }

// startReads sends reads, as many as may be under way.
func (f *follower) startReads() {
	for !f.broken && f.reads+len(f.next) < maxReads && len(f.queue) > 0 {
		j := f.queue[0]
		f.queue[0], f.queue = nil, f.queue[1:]
		if !f.waitAbove(j) {
			j.again, j.renewed = false, false
			f.wantRead(j, f.firstRead(j))
		}
	}
	for len(f.next) > 0 {
		n := f.together()
		switch {
		case f.broken:
			f.queue = append(f.queue, f.next[0].job)
		case n == 1:
			f.readAlone(f.next[0])
		default:
			f.readTogether(f.next[:n:n])
		}
		f.next = f.next[n:]
	}
	f.next = nil
}

// firstRead returns the kind of the first read of a job.
func (f *follower) firstRead(j *job) bridge.ReadKind {
	switch {
	case f.source.oneShot():
		return bridge.ReadData // a one-shot watch of the Stat would stay where there is no node
	case !f.cfg.namesOnly && !j.check:
		return bridge.ReadData
	}
	e, there := f.tree.entries[j.path]
	if there && e.node.Stat.DataLength <= smallData && f.shares(read{j, bridge.ReadData}) {
		return bridge.ReadData
	}
	return bridge.ReadStat
}

// shares reports whether a read may share a request. The servers do not set watches by such a
// request, and do not return a Stat without the data.
func (f *follower) shares(r read) bool {
	return !f.alone && !r.alone && r.kind != bridge.ReadStat && !f.source.oneShot()
}

// together returns how many of the next reads are to be one request.
func (f *follower) together() int {
	n, total := 0, 0
	for n < min(len(f.next), maxTogether) && !f.broken && f.shares(f.next[n]) {
		if total += f.size(f.next[n]); total > maxBytes {
			break
		}
		n++
	}
	return max(n, 1)
}

// size returns about how many bytes the answer to a read has, and 0 for a node that is not known.
func (f *follower) size(r read) int {
	e, there := f.tree.entries[r.path]
	switch {
	case !there:
		return 0
	case r.kind == bridge.ReadChildren:
		const name = 32
		return name * int(e.node.Stat.NumChildren)
	}
	return int(e.node.Stat.DataLength)
}

// readAlone sends one read.
func (f *follower) readAlone(r read) {
	f.reads++
	session, source := f.session, f.source
	bridge.OfSession(session).StartRead(r.path, r.kind, source.oneShot(),
		func(data []byte, children []string, stat *zk.Stat, w *framework.Watch, err error) {
			open := f.inbox.Put(func() {
				f.reads--
				if f.err != nil {
					return
				}
				taken := f.take(session, r.job, answer{r.kind, data, children, stat, err})
				if taken && w != nil {
					source.taken(r.path, r.kind, w)
				}
			})
			switch {
			case w == nil:
			case open:
				source.follow(r.path, r.kind, w)
			default:
				dropWatch(w)
			}
		})
}

// dropWatch drops the watch of a read, if the read has set one.
func dropWatch(w *framework.Watch) {
	if w != nil {
		bridge.OfWatch(w).Drop()
	}
}

// readTogether sends several reads in one request. If that fails, they are sent alone: the answer
// may be too large.
func (f *follower) readTogether(some []read) {
	f.reads += len(some)
	session := f.session
	ops, pzxids := make([]framework.ReadOp, len(some)), make([]int64, len(some))
	for i, r := range some {
		if r.kind == bridge.ReadData {
			ops[i] = framework.GetOp(r.path)
			continue
		}
		ops[i] = framework.ChildrenOp(r.path)
		if e, there := f.tree.entries[r.path]; there {
			pzxids[i] = e.node.Stat.Pzxid // the list is not older than that
		}
	}
	bridge.OfSession(session).StartMultiRead(ops, func(results []framework.ReadResult, err error) {
		f.inbox.Put(func() {
			f.reads -= len(some)
			f.alone = f.alone || errors.Is(err, framework.ErrUnimplemented)
			for i, r := range some {
				switch {
				case f.err != nil:
					return
				case err != nil:
					r.alone = true
					f.fail(r.job)
					continue
				}
				f.take(session, r.job, partOf(results[i], r.kind, pzxids[i]))
			}
		})
	})
}

// partOf makes the answer to one of several reads. Its data is a copy, because the bytes of the
// result are those of the other results, too. The result of a list has no Stat.
func partOf(result framework.ReadResult, kind bridge.ReadKind, pzxid int64) answer {
	a := answer{kind, bytes.Clone(result.Data), result.Children, result.Stat, result.Err}
	if kind == bridge.ReadChildren && a.err == nil {
		a.stat = &zk.Stat{Pzxid: pzxid}
	}
	return a
}

// take handles the answer to a read that was sent in a session. It reports false if the job has to
// start again.
func (f *follower) take(session *framework.Session, j *job, a answer) bool {
	switch {
	case f.session != session || a.err != nil && framework.IsTransient(a.err) || session.Err() != nil:
		f.fail(j)
		return false
	case f.waitAbove(j):
		return false
	}
	f.answered(j, a)
	return true
}
