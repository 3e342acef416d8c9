package tree

import (
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/internal/proto"
)

// multi carries out all parts or none. Each part sees the changes of the parts before it.
func (t *Tree) multi(req *proto.Request, caller Caller, at Stamp) Outcome {
	all := Outcome{Op: fault.OpMulti}
	if !t.legible(req) {
		all.Code = proto.Marshalling
		return all
	}
	var undo []func()
	for i := range req.Parts {
		part := t.asPart(req.Parts[i])
		e, code := t.plan(&part, caller)
		if code != proto.OK {
			for i := len(undo) - 1; i >= 0; i-- {
				undo[i]()
			}
			if misread(&part) {
				return Outcome{Op: fault.OpMulti, Code: proto.Marshalling}
			}
			return Outcome{Op: fault.OpMulti, Parts: failedParts(len(req.Parts), i, code)}
		}
		if e.Kind == 0 {
			all.Parts = append(all.Parts, Outcome{Op: part.Op})
			continue
		}
		undo = append(undo, t.apply(e, at))
		all.Effects = append(all.Effects, e)
		all.Parts = append(all.Parts, t.outcome(part.Op, e, nil))
	}
	t.account(all.Effects)
	return all
}

// legible reports whether all flags in a multi exist. New servers reject an unknown flag while they
// read the multi.
func (t *Tree) legible(req *proto.Request) bool {
	for i := range req.Parts {
		if part := &req.Parts[i]; creates(part.Op) && t.rules.StrictMultiFlags && !isFlag(part.Flags) {
			return false
		}
	}
	return true
}

func creates(o fault.Op) bool {
	return o == fault.OpCreate || o == fault.OpCreate2 || o == fault.OpCreateContainer || o == fault.OpCreateTTL
}

// misread reports whether a part has one type by its flag and another by its content. The real
// server fails when it reaches such a part, and rejects the whole multi.
func misread(part *proto.Request) bool {
	return creates(part.Op) && isTTL(part.Flags) && part.Op != fault.OpCreateTTL
}

// asPart returns a create of any type with the type that it has within a multi, where the flag
// decides.
func (t *Tree) asPart(req proto.Request) proto.Request {
	switch {
	case !creates(req.Op):
	case req.Flags == proto.FlagContainer:
		req.Op = fault.OpCreateContainer
	case isTTL(req.Flags):
	case req.Op == fault.OpCreate2 && !t.rules.OldMultiCreate2:
	default:
		req.Op = fault.OpCreate
	}
	return req
}

func failedParts(n, failed int, code proto.Code) []Outcome {
	parts := make([]Outcome, n)
	for i := range parts {
		parts[i].Op = -1
		switch {
		case i == failed:
			parts[i].Code = code
		case i > failed:
			parts[i].Code = proto.RuntimeInconsist
		}
	}
	return parts
}
