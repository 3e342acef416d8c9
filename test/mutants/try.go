package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
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
	{"recipes/internal/enqueue", []string{"recipes/internal/enqueue", "recipes/mutex", "recipes/semaphore",
		"recipes/multilock", "recipes/rwlock"}},
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
	// firstBatch is how many tests are run before all others: the fastest ones.
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

// try tries the mutants of a package. It returns the results by file.
func (t target) try(s settings, last map[string]score, w io.Writer) (map[string][]result, error) {
	if s.tests != "" {
		t.tests = []string{s.tests}
	}
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	source, err := instrument(t.folder)
	if err != nil {
		return nil, err
	}
	overlay, err := writeOverlay(dir, source.files)
	if err != nil {
		return nil, err
	}
	tests, err := t.build(dir, overlay, w, s.workers)
	if err != nil {
		return nil, err
	}
	var chosen []mutant
	for _, m := range source.mutants {
		if strings.Contains(m.file, s.files) && (!s.again || slices.Contains(last[m.file].Survivors, m.key())) {
			chosen = append(chosen, m)
		}
	}
	results := make([]result, len(chosen))
	each(s.workers, len(chosen), func(i int) {
		results[i] = result{chosen[i], tryOne(chosen[i], tests)}
		if r := results[i]; s.verbose || r.outcome == survived || r.outcome == unreached {
			fmt.Fprintf(w, "%-20s %s\n", r.outcome, r.key())
		}
	})
	byFile := map[string][]result{}
	for _, r := range results {
		byFile[r.file] = append(byFile[r.file], r)
	}
	return byFile, nil
}

// each calls fn for all numbers below n, a few at a time.
func each(workers, n int, fn func(i int)) {
	var all sync.WaitGroup
	next := make(chan int)
	for range workers {
		all.Go(func() {
			for i := range next {
				fn(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	all.Wait()
}

// writeOverlay writes the files with mutants, and returns the name of a file for "go test -overlay".
func writeOverlay(dir string, files map[string]string) (string, error) {
	files = maps.Clone(files)
	files["internal/mutantruntime/mutants.go"] = runtimeSource
	replace := map[string]string{}
	for name, content := range files {
		actual, err := filepath.Abs(name)
		if err != nil {
			return "", err
		}
		replace[actual] = filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(replace[actual], []byte(content), 0o644); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o644)
}

// build compiles the tests, runs each test once, and notes which mutants it reaches.
func (t target) build(dir, overlay string, w io.Writer, workers int) (tests []*test, err error) {
	for _, of := range t.tests {
		folder, pattern, ok := strings.Cut(of, " ")
		if !ok {
			pattern = "^Test"
		}
		// Some tests expect the name that "go test" gives to the binary.
		binary := filepath.Join(dir, strings.ReplaceAll(folder, "/", "_"), filepath.Base(folder)+".test")
		build := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary, "./"+folder)
		if output, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%w: %s", err, output)
		}
		list := exec.Command(binary, "-test.list", pattern)
		list.Dir = folder
		names, err := list.Output()
		if err != nil {
			return nil, err
		}
		for name := range strings.FieldsSeq(string(names)) {
			tests = append(tests, &test{binary: binary, folder: folder, name: name})
		}
	}
	each(workers, len(tests), func(i int) { tests[i].measure(filepath.Join(dir, fmt.Sprintf("reached%d", i)), w) })
	tests = slices.DeleteFunc(tests, func(t *test) bool { return t.reaches == nil })
	slices.SortStableFunc(tests, func(a, b *test) int { return int(a.took - b.took) })
	return tests, nil
}

// measure runs a test without a mutant. A test that is slow or fails is not used.
func (t *test) measure(file string, w io.Writer) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	run := command(ctx, t.binary, t.folder, []string{t.name}, "DOCENT_MUTANTS_REACHED="+file)
	err := run.Run()
	t.took = time.Since(began)
	busy := run.ProcessState.UserTime() + run.ProcessState.SystemTime()
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
func command(ctx context.Context, binary, folder string, names []string, env ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, binary, "-test.failfast", "-test.run", "^("+strings.Join(names, "|")+")$")
	c.Dir = folder
	c.WaitDelay = time.Second
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "ZOOKEEPER=") && !strings.HasPrefix(v, "ZKTEST_SEEDS=") {
			c.Env = append(c.Env, v)
		}
	}
	c.Env = append(append(c.Env, "ZKTEST_SEEDS=4"), env...)
	return c
}

// tryOne runs the tests that reach a mutant until one fails: the fastest ones first.
func tryOne(m mutant, tests []*test) outcome {
	reaching := slices.DeleteFunc(slices.Clone(tests), func(t *test) bool { return !t.reaches[m.id] })
	if len(reaching) == 0 {
		return unreached
	}
	first := min(firstBatch, len(reaching))
	for _, batch := range [][]*test{reaching[:first], reaching[first:]} {
		byFolder := map[string][]*test{}
		for _, t := range batch {
			byFolder[t.folder] = append(byFolder[t.folder], t)
		}
		for _, folder := range slices.Sorted(maps.Keys(byFolder)) {
			if o := runBatch(m, byFolder[folder]); o != survived {
				return o
			}
		}
	}
	return survived
}

// runBatch runs tests of one package.
func runBatch(m mutant, batch []*test) outcome {
	limit := patience
	var names []string
	for _, t := range batch {
		limit += 10 * t.took
		names = append(names, t.name)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	err := command(ctx, batch[0].binary, batch[0].folder, names, fmt.Sprintf("DOCENT_MUTANT=%d", m.id)).Run()
	switch {
	case err == nil:
		return survived
	case ctx.Err() != nil:
		return hung
	}
	return found
}
