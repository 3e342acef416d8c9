package conn

import "github.com/go-zookeeper/zk"

// Ephemerals lists the ephemeral nodes of the session with paths that begin with prefix.
func Ephemerals(prefix string) Request {
	r := newRequest(opEphemerals, len(prefix)+4)
	r.frame.string(prefix)
	return r
}

// CountAll counts all nodes below a node.
func CountAll(path string) Request {
	r := newRequest(opCountAll, len(path)+4)
	r.frame.string(path)
	return r
}

// Read is a part of MultiRead. It reads the data and the Stat, or the names of the children.
type Read struct {
	Path     string
	Children bool
}

// kind returns the number of a read, which its result has, too.
func (r Read) kind() int32 {
	if r.Children {
		return opGetChildren
	}
	return opGetData
}

// MultiRead makes all reads. Each succeeds or fails on its own.
func MultiRead(reads []Read) Request {
	r := newRequest(opMultiRead, 64*len(reads))
	for _, read := range reads {
		r.frame.part(read.kind(), false)
		r.frame.string(read.Path)
		r.frame.bool(false) // servers ignore watches here
	}
	r.frame.part(-1, true)
	return r
}

// Reading is the result of a Read.
type Reading struct {
	Data     []byte
	Stat     *zk.Stat
	Children []string
	Err      error
}

// Paths returns the result of Ephemerals.
func (r Reply) Paths() ([]string, error) {
	d := decoder{rest: r.body, err: r.err}
	paths := d.strings()
	return paths, d.err
}

// Count returns the result of CountAll.
func (r Reply) Count() (int, error) {
	d := decoder{rest: r.body, err: r.err}
	count := d.int()
	return int(count), d.err
}

// Readings returns the results of MultiRead, one for each of reads. A reply with other results than those
// of reads is malformed.
func (r Reply) Readings(reads []Read) ([]Reading, error) {
	d := decoder{rest: r.body, err: r.err}
	all := make([]Reading, 0, len(reads))
	for kind, more := d.result(); more; kind, more = d.result() {
		if len(all) == len(reads) || kind != opError && kind != reads[len(all)].kind() {
			return nil, errMalformed
		}
		all = append(all, d.reading(kind))
	}
	if d.err == nil && len(all) < len(reads) {
		d.err = errMalformed
	}
	if d.err != nil {
		return nil, d.err
	}
	return all, nil
}

func (d *decoder) reading(kind int32) (r Reading) {
	switch kind {
	case opGetData:
		r.Data, r.Stat = d.buffer(), d.stat()
	case opGetChildren:
		r.Children = d.strings()
	default:
		if r.Err = code(d.int()); r.Err == nil && d.err == nil {
			d.err = errMalformed
		}
	}
	return r
}
