package main

import (
	"bufio"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/docent-zk/docent/internal/overlay"
)

// target is a package to break, and the packages whose tests should find it, some with a pattern for
// the names of the tests.
type target struct {
	folder string
	tests  []string
}

var targets = []target{
	{"recipes/internal/queue", []string{"recipes/internal/queue", "recipes/mutex", "recipes/rwlock",
		"recipes/semaphore", "recipes/multilock", "test/acceptance ^TestP03_Node"}},
	{"recipes/internal/queuelist", []string{"recipes/internal/queuelist", "recipes/internal/queue", "recipes/mutex"}},
	{"recipes/internal/ownership", []string{"recipes/internal/ownership", "recipes/mutex", "recipes/rwlock",
		"recipes/internal/handoff", "recipes/multilock", "recipes"}},
	{"recipes/internal/locknode", []string{"recipes/internal/locknode", "recipes/internal/queue", "recipes/mutex",
		"recipes/leader"}},
	{"recipes/internal/enqueue", []string{"recipes/internal/enqueue", "recipes/internal/queue", "recipes/mutex",
		"recipes/semaphore", "recipes/multilock", "recipes/rwlock"}},
	{"framework/internal/conn", []string{"framework/internal/conn", "framework"}},
}

//go:embed runtime/mutants.go.txt
var runtimeSource string

const (
	// slowTest and busyTest are how long a test may take, and use a processor, that is repeated for each
	// mutant.
	slowTest = 40 * time.Second
	busyTest = 4 * time.Second
	// patience is what a test may take longer with a mutant, besides ten times as long as without.
	patience = 30 * time.Second
	// firstBatch is how many tests are run before all others. Each further batch is four times as large.
	firstBatch = 10
)

// outcome is what became of a mutant.
type outcome string

const (
	found     outcome = "a test fails"
	hung      outcome = "a test does not end"
	survived  outcome = "no test fails"
	unreached outcome = "no test reaches it"
)

type result struct {
	mutant
	outcome outcome
}

// test is one test of a compiled package.
type test struct {
	binary, folder, name string
	took                 time.Duration
	reaches              map[int]bool
}

// runner tries the mutants of a package.
type runner struct {
	settings
	target
	dir   overlay.Dir
	tests []*test
	w     io.Writer
}

// all tries the mutants of all files that the settings include. It sets, and with -save writes, the scores of
// each file when it is finished. The error has all mutants whose outcome is wrong.
func (r *runner) all(ctx context.Context, s *source, all scoreTable, explained map[string]string) error {
	var wrong []error
	for _, group := range s.groups() {
		file, k := group[0].file, group[0].kind
		last, tried := all[file][k]
		switch {
		case !r.includes(file, k) && tried:
			continue
		case !r.includes(file, k):
			all.set(file, k, score{Mutants: len(group), Untried: len(group)})
			continue
		case r.again:
			group = slices.DeleteFunc(group, func(m mutant) bool { return !slices.Contains(last.Survivors, m.key()) })
		}
		results := r.try(ctx, group)
		if ctx.Err() != nil {
			return errors.Join(append(wrong, ctx.Err())...)
		}
		sc, err := judge(results, explained)
		if r.again {
			sc = sc.since(last)
		}
		fmt.Fprintf(r.w, "%s, %s: %v\n", file, k, sc)
		all.set(file, k, sc)
		wrong = append(wrong, err)
		if r.save {
			wrong = append(wrong, all.write(scores))
		}
	}
	if r.save {
		wrong = append(wrong, all.write(scores)) // with what was not tried
	}
	return errors.Join(wrong...)
}

// try returns the results of mutants, some of which are missing if ctx has ended.
func (r *runner) try(ctx context.Context, mutants []mutant) []result {
	results := make([]result, len(mutants))
	each(ctx, r.workers, len(mutants), func(i int) {
		results[i] = result{mutants[i], tryOne(ctx, r.dir, mutants[i], r.tests)}
		if one := results[i]; r.verbose || one.outcome == survived || one.outcome == unreached {
			fmt.Fprintf(r.w, "%-20s %s\n", one.outcome, one.key())
		}
	})
	return results
}

// each calls fn for all numbers below n, a few at a time, until ctx ends.
func each(ctx context.Context, workers, n int, fn func(i int)) {
	var all sync.WaitGroup
	next := make(chan int)
	for range workers {
		all.Go(func() {
			for i := range next {
				fn(i)
			}
		})
	}
	for i := 0; i < n && ctx.Err() == nil; i++ {
		next <- i
	}
	close(next)
	all.Wait()
}

// build compiles the tests, runs each test once, and notes which mutants it reaches. The order of the
// tests is by whole seconds that they take, then by how many mutants they reach.
func (r *runner) build(ctx context.Context, s *source) (tests []*test, err error) {
	files := maps.Clone(s.files)
	files["internal/mutantruntime/mutants.go"] = runtimeSource
	changed, err := r.dir.Write(files)
	if err != nil {
		return nil, err
	}
	dir := filepath.Dir(changed)
	if r.settings.tests != "" {
		r.target.tests = []string{r.settings.tests}
	}
	for _, of := range r.target.tests {
		folder, pattern, ok := strings.Cut(of, " ")
		if !ok {
			pattern = "^Test"
		}
		// Some tests expect the name that "go test" gives to the binary.
		binary := filepath.Join(dir, strings.ReplaceAll(folder, "/", "_"), filepath.Base(folder)+".test")
		build := r.dir.Command(ctx, []string{r.dir.Cache()},
			"go", "test", "-c", "-vet=off", "-overlay", changed, "-o", binary, "./"+folder)
		if output, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%w: %s", err, output)
		}
		list := r.dir.Command(ctx, nil, binary, "-test.list", pattern)
		list.Dir = folder
		names, err := list.Output()
		if err != nil {
			return nil, err
		}
		for name := range strings.FieldsSeq(string(names)) {
			tests = append(tests, &test{binary: binary, folder: folder, name: name})
		}
	}
	each(ctx, r.workers, len(tests), func(i int) {
		tests[i].measure(ctx, r.dir, filepath.Join(dir, fmt.Sprintf("reached%d", i)), r.w)
	})
	tests = slices.DeleteFunc(tests, func(t *test) bool { return t.reaches == nil })
	slices.SortStableFunc(tests, func(a, b *test) int {
		return cmp.Or(int(a.took.Truncate(time.Second)-b.took.Truncate(time.Second)), len(a.reaches)-len(b.reaches))
	})
	return tests, ctx.Err()
}

// measure runs a test without a mutant. A test that is slow or fails is not used.
func (t *test) measure(ctx context.Context, dir overlay.Dir, file string, w io.Writer) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	run := command(ctx, dir, t.binary, t.folder, []string{t.name}, "DOCENT_MUTANTS_REACHED="+file)
	err := run.Run()
	t.took = time.Since(began)
	var busy time.Duration
	if run.ProcessState != nil {
		busy = run.ProcessState.UserTime() + run.ProcessState.SystemTime()
	}
	if err != nil || t.took > slowTest || busy > busyTest {
		fmt.Fprintf(w, "not used: %s of %s, %v, %v\n", t.name, t.folder, t.took.Round(time.Second), err)
		return
	}
	if t.reaches, err = readReached(file); err != nil {
		fmt.Fprintf(w, "not used: %s of %s, %v\n", t.name, t.folder, err)
	}
}

func readReached(name string) (map[int]bool, error) {
	reached := map[int]bool{}
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return reached, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		id, err := strconv.Atoi(lines.Text())
		if err != nil {
			return nil, err
		}
		reached[id] = true
	}
	return reached, lines.Err()
}

// command returns a run of tests. Simulations run few seeds.
func command(ctx context.Context, dir overlay.Dir, binary, folder string, names []string, env string) *exec.Cmd {
	c := dir.Command(ctx, []string{"ZKTEST_SEEDS=4", env},
		binary, "-test.failfast", "-test.run", "^("+strings.Join(names, "|")+")$")
	c.Dir = folder
	return c
}

// tryOne runs the tests that reach a mutant, a few at first, until one fails.
func tryOne(ctx context.Context, dir overlay.Dir, m mutant, tests []*test) outcome {
	reaching := slices.DeleteFunc(slices.Clone(tests), func(t *test) bool { return !t.reaches[m.id] })
	if len(reaching) == 0 {
		return unreached
	}
	for n := firstBatch; len(reaching) > 0; n *= 4 {
		batch := reaching[:min(n, len(reaching))]
		reaching = reaching[len(batch):]
		byFolder := map[string][]*test{}
		for _, t := range batch {
			byFolder[t.folder] = append(byFolder[t.folder], t)
		}
		for _, folder := range slices.Sorted(maps.Keys(byFolder)) {
			if o := runBatch(ctx, dir, m, byFolder[folder]); o != survived {
				return o
			}
		}
	}
	return survived
}

// runBatch runs tests of one package.
func runBatch(ctx context.Context, dir overlay.Dir, m mutant, batch []*test) outcome {
	limit := patience
	var names []string
	for _, t := range batch {
		limit += 10 * t.took
		names = append(names, t.name)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := command(ctx, dir, batch[0].binary, batch[0].folder, names, fmt.Sprintf("DOCENT_MUTANT=%d", m.id)).Run()
	switch {
	case err == nil:
		return survived
	case ctx.Err() != nil:
		return hung
	}
	return found
}
