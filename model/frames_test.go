package model

import (
	"encoding/binary"
	"io"

	"github.com/docent-zk/docent/zktest/fault"
)

func readFrame(from io.Reader) ([]byte, error) {
	frame := make([]byte, 4)
	if _, err := io.ReadFull(from, frame); err != nil {
		return nil, err
	}
	body := make([]byte, binary.BigEndian.Uint32(frame))
	_, err := io.ReadFull(from, body)
	return append(frame, body...), err
}

// fields reads the fields of a frame, one after another. Beyond its end all fields are zero.
type fields struct{ rest []byte }

// Where the fields of a frame begin, behind its length.
const (
	ofRequest = 4 + 4 + 4     // behind the xid and the operation
	ofReply   = 4 + 4 + 8 + 4 // behind the xid, the zxid and the error
)

func fieldsAt(frame []byte, at int) *fields { return &fields{frame[min(at, len(frame)):]} }

func (f *fields) skip(n int) []byte {
	if n < 0 || n > len(f.rest) {
		n = len(f.rest)
	}
	skipped := f.rest[:n]
	f.rest = f.rest[n:]
	return skipped
}

func (f *fields) int32() int32 {
	if b := f.skip(4); len(b) == 4 {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (f *fields) string() string { return string(f.skip(max(0, int(f.int32())))) }

func (f *fields) strings() (all []string) {
	for range f.int32() {
		all = append(all, f.string())
	}
	return all
}

func xidOf(frame []byte) int32      { return fieldsAt(frame, 4).int32() }
func opOf(frame []byte) fault.Op    { return fault.Op(fieldsAt(frame, 8).int32()) }
func pathOf(request []byte) string  { return fieldsAt(request, ofRequest).string() }
func errorOf(reply []byte) int32    { return fieldsAt(reply, 4+4+8).int32() }
func textOf(reply []byte) string    { return fieldsAt(reply, ofReply).string() }
func setsWatch(request []byte) bool { return request[len(request)-1] == 1 } // of a read

// eventOf returns the kind of an event, and the node.
func eventOf(frame []byte) (kind int32, node string) {
	f := fieldsAt(frame, ofReply)
	kind, _ = f.int32(), f.int32()
	return kind, f.string()
}

// watchesOf returns the nodes whose data or children a request watches again.
func watchesOf(frame []byte) []string {
	f := fieldsAt(frame, ofRequest+8) // behind the zxid
	data, _, children := f.strings(), f.strings(), f.strings()
	return append(data, children...)
}

// part is one operation of a transaction, or its result.
type part struct {
	op   fault.Op
	path string
	err  int32
}

const noOp fault.Op = -1 // the result of an operation of a transaction that has failed

// nextPart reads the header of a part. It reports false behind the last one.
func (f *fields) nextPart() (p part, more bool) {
	p.op = fault.Op(f.int32())
	done := f.skip(1)
	p.err = f.int32()
	return p, len(done) == 1 && done[0] == 0
}

// operationsOf returns the operations of a transaction.
func operationsOf(request []byte) (all []part) {
	f := fieldsAt(request, ofRequest)
	for p, more := f.nextPart(); more; p, more = f.nextPart() {
		p.path = f.string()
		switch p.op {
		case fault.OpCreate, fault.OpCreate2:
			f.string() // data
			for range f.int32() {
				f.int32()
				f.string()
				f.string()
			}
			f.int32()
		case fault.OpSetData:
			f.string()
			f.int32()
		default:
			f.int32() // version
		}
		all = append(all, p)
	}
	return all
}

// resultsOf returns the results of a transaction.
func resultsOf(reply []byte) (all []part) {
	const stat = 68
	f := fieldsAt(reply, ofReply)
	for p, more := f.nextPart(); more; p, more = f.nextPart() {
		switch p.op {
		case noOp:
			p.err = f.int32()
		case fault.OpCreate:
			p.path = f.string()
		case fault.OpCreate2:
			p.path = f.string()
			f.skip(stat)
		case fault.OpSetData:
			f.skip(stat)
		}
		all = append(all, p)
	}
	return all
}
