package differential

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/docent-zk/docent/internal/rawzk"
)

func TestMutants(t *testing.T) {
	compare(t, group{scenarios: []scenario{mutilatedRequests, oddPathsAndRecursiveWatches}})
}

const mutants = 600

// mutilatedRequests sends valid requests with a few bytes changed. DIFFERENTIAL_MUTANTS is the
// seed.
func mutilatedRequests(s *script) {
	seed, err := strconv.ParseUint(os.Getenv("DIFFERENTIAL_MUTANTS"), 10, 64)
	if err != nil {
		seed = 1
	}
	s.logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	c := s.connect("c")
	for range mutants {
		ops := s.mutable()
		op := ops[random.IntN(len(ops))]
		body, what := mutate(random, op.Body)
		c = s.odd(c, rawzk.Op{Code: op.Code, Body: body, Text: fmt.Sprintf("%s in %v: %x", what, op, body)})
	}
	c.close()
}

// mutable returns the requests without createTTL and addWatch. Mutants of the former end the real
// server, those of the latter make it keep connections open.
func (s *script) mutable() []rawzk.Op {
	var ops []rawzk.Op
	for _, op := range s.requests() {
		if op.Code != rawzk.OpCreateTTL && op.Code != rawzk.OpAddWatch && len(op.Body) > 0 {
			ops = append(ops, op)
		}
	}
	return ops
}

var extremes = []int32{0, 1, -1, -2, 2, 3, 4, 5, 6, 7, 100, 1 << 16, 1<<31 - 1, -1 << 31}

// mutate returns a changed copy of body and a description of the change.
func mutate(random *rand.Rand, body []byte) ([]byte, string) {
	body = append([]byte(nil), body...)
	at := random.IntN(len(body))
	switch random.IntN(4) {
	case 0:
		bit := random.IntN(8)
		body[at] ^= 1 << bit
		return body, fmt.Sprintf("bit %d of byte %d inverted", bit, at)
	case 1:
		return body[:at], fmt.Sprintf("cut at %d", at)
	case 2:
		return append(body[:at:at], body[at+1:]...), fmt.Sprintf("byte %d left out", at)
	}
	v := extremes[random.IntN(len(extremes))]
	at = min(at, max(0, len(body)-4))
	if len(body) >= 4 {
		binary.BigEndian.PutUint32(body[at:], uint32(v))
	}
	return body, fmt.Sprintf("%d at byte %d", v, at)
}

// oddPathsAndRecursiveWatches uses a recursive watch, with which the server checks the parents of
// each path, for all clients.
func oddPathsAndRecursiveWatches(s *script) {
	a, b := s.connect("a"), s.connect("b")
	s.checkOddPaths(a)
	b.do(rawzk.AddWatch(s.path("x"), 1))
	s.checkOddPaths(a)
	b.do(rawzk.AddWatch("a", 1))
	s.checkOddPaths(a)
	b.do(rawzk.RemoveWatches(s.path("x"), 3))
	b.do(rawzk.RemoveWatches("a", 3))
	s.checkOddPaths(a)
}

func (s *script) checkOddPaths(c *client) {
	for _, path := range []string{"garbage", "a/b", "", "/", "\xff\xff", "/x/", "//", s.path("x")} {
		for kind := int32(1); kind <= 3; kind++ {
			c.do(rawzk.CheckWatches(path, kind))
		}
	}
}
