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

// MultiRead makes all reads. Each succeeds or fails on its own.
func MultiRead(reads []Read) Request {
	r := newRequest(opMultiRead, 64*len(reads))
	for _, read := range reads {
		op := int32(opGetData)
		if read.Children {
			op = opGetChildren
		}
		r.frame.part(op, false)
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

// Readings returns the results of MultiRead, one for each of count reads.
func (r Reply) Readings(count int) ([]Reading, error) {
	d := decoder{rest: r.body, err: r.err}
	all := make([]Reading, 0, count)
	for d.err == nil {
		kind, done := d.int(), d.bool()
		d.int() // the error of a failed part, which its body repeats
		if d.err != nil || done {
			break
		}
		all = append(all, d.reading(kind))
	}
	if d.err == nil && len(all) != count {
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
	case opError:
		r.Err = code(d.int())
	default:
		d.err = errMalformed
	}
	return r
}
