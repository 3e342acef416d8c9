package safety

import "github.com/docent-zk/docent/fence"

// register is the resource that a lock protects: a number with a version. A program reads it, thinks,
// and writes what depends on what it has read. Programs reach it whatever becomes of the lock.
type register struct {
	version int
	fence   *fence.Register // compares tokens; nil: does not
	lost    int             // updates that were overwritten by a program that had not read them
}

// read returns the version, and false if the token is refused.
func (r *register) read(token int64) (version int, ok bool) {
	return r.version, r.accepts(token)
}

func (r *register) accepts(token int64) bool { return r.fence == nil || r.fence.Accept(token) == nil }

// write replaces the version that was read. It returns false if the token is refused.
func (r *register) write(token int64, read int) bool {
	if !r.accepts(token) {
		return false
	}
	if read != r.version {
		r.lost++
	}
	r.version++
	return true
}
