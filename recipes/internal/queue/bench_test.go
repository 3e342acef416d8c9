package queue

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// crowd is the children of a long line, in no order.
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
		if _, ok := parse(name, Exclusive.Block); !ok {
			b.Fatal(name)
		}
	}
}

// BenchmarkSurvey5000 is what somebody at the end of a long line makes of a list of it.
func BenchmarkSurvey5000(b *testing.B) {
	children := crowd(5000)
	last := member{"_c_8026b758-0c64-4418-a4a7-ffffffffffff-lock-0000005000", 5000}
	p := &place{line: &Line{rules: Exclusive}, member: last}
	b.ReportAllocs()
	for b.Loop() {
		if seen := p.survey(children); seen.last.seq != 4999 || seen.second.seq != 4998 {
			b.Fatal(seen)
		}
	}
}
