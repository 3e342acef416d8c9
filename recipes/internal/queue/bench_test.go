package queue

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/docent-zk/docent/recipes/internal/locknode"
)

// crowd returns the children of a long queue in random order.
func crowd(n int) []string {
	random := rand.New(rand.NewPCG(1, 2))
	children := make([]string, n)
	for i := range children {
		children[i] = fmt.Sprintf("_c_8026b758-0c64-4418-a4a7-%012x-lock-%010d", i, i)
	}
	random.Shuffle(n, func(i, j int) { children[i], children[j] = children[j], children[i] })
	return children
}

func BenchmarkParse(b *testing.B) {
	name := crowd(1)[0]
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := locknode.Parse(name, Exclusive.Conflicting); !ok {
			b.Fatal(name)
		}
	}
}

// BenchmarkOrder5000 measures the sorting of the list of a long queue. Waiters that share the list
// share its order.
func BenchmarkOrder5000(b *testing.B) {
	children := crowd(5000)
	b.ReportAllocs()
	for b.Loop() {
		if o := directory(Exclusive).Sort(children); len(o.Conflicting) != 5000 {
			b.Fatal(len(o.Conflicting))
		}
	}
}

// BenchmarkSurvey5000 measures findAhead in that order for a waiter in the middle of the queue.
func BenchmarkSurvey5000(b *testing.B) {
	ordered := directory(Exclusive).Sort(crowd(5000))
	p := &waiter{queue: &Queue{rules: Exclusive}, Node: ordered.Conflicting[2500]}
	b.ReportAllocs()
	for b.Loop() {
		if seen := p.findAhead(&ordered); seen.predecessor.Seq != 2499 || seen.grandPredecessor.Seq != 2498 {
			b.Fatal(seen)
		}
	}
}
