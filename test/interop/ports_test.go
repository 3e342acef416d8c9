package interop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/peers"
	"github.com/docent-zk/docent/internal/realzk"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/recipes/rwlock"
	"github.com/docent-zk/docent/recipes/semaphore"
	"github.com/docent-zk/docent/zktest/ensemble"
)

// The programs in examples/porting run beside their originals, with so many processes of each and
// so many turns.
const (
	portProcesses = 2
	portRounds    = 10
	portWorkers   = 3 // of a process of the pool
	portLimit     = 3 // of the pool
)

// portedProgram is one of these programs.
type portedProgram struct {
	folder, class string
	flags         []string
	// keep prevents all programs from getting the lock until the hold is released. They wait in the
	// queue meanwhile.
	keep    func(ctx context.Context, c *framework.Client, path string) (hold *recipes.Hold, queue portQueue, err error)
	inQueue func(processes int) int
	says    string // pattern of a process's output after its name; check gets the number in the group
	check   func(t *testing.T, dir string, said map[string]int)
	stays   []string // nodes that remain below the path
}

// portQueue returns the participants in the queue.
type portQueue func(context.Context) ([]recipes.Participant, error)

var portedPrograms = []portedProgram{
	{
		folder: "limited-resource", class: "LimitedResource",
		keep: keepMutex, inQueue: func(processes int) int { return 1 + processes }, // the first is the test's
		says:  `has used the resource (\d+) times`,
		check: checkLimitedResource,
	},
	{
		folder: "cache-rebuild", class: "CacheRebuild",
		keep: keepReaders, inQueue: func(processes int) int { return processes },
		says:  fmt.Sprintf(`has placed %d orders and rebuilt the cache (\d+) times`, portRounds),
		check: checkCache,
	},
	{
		folder: "worker-pool", class: "WorkerPool",
		flags: []string{"-limit", strconv.Itoa(portLimit), "-workers", strconv.Itoa(portWorkers)},
		keep:  keepPool, inQueue: func(processes int) int { return processes * portWorkers },
		says:  fmt.Sprintf(`has done %d jobs, of at most (\d+) at a time`, portWorkers*portRounds),
		check: checkPool, stays: []string{"leases", "locks"},
	},
}

func TestPortsShareLocksWithTheirOriginals(t *testing.T) {
	realzk.Need(t)
	ports := buildPorts(t)
	java := peers.Java(t, "../../examples/porting/*/*.java")
	server := ensemble.Start(t, 1, ensemble.WithTick(200*time.Millisecond))
	client := testzk.Connected(t, server.Connect())
	for _, p := range portedPrograms {
		t.Run(p.folder, func(t *testing.T) {
			t.Parallel()
			p.runBoth(t, client, server.Connect(), map[string][]string{
				"java": append(slices.Clone(java), p.class),
				"go":   {filepath.Join(ports, p.folder)},
			})
		})
	}
}

// buildPorts returns the folder with the Go programs.
func buildPorts(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	output, err := exec.Command("go", "build", "-race", "-o", folder, "../../examples/porting/...").CombinedOutput()
	require.NoError(t, err, "%s", output)
	return folder
}

// runBoth starts all processes, and releases the lock when all of them are in the queue.
func (p portedProgram) runBoth(t *testing.T, client *framework.Client, connect string, commands map[string][]string) {
	path, dir := "/ports/"+p.folder, t.TempDir()
	hold, queue, err := p.keep(testzk.Context(t), client, path)
	require.NoError(t, err)
	var all []*portProcess
	for language, command := range commands {
		flags := []string{"-connect", connect, "-path", path, "-dir", dir, "-rounds", strconv.Itoa(portRounds)}
		for range portProcesses {
			all = append(all, startPort(t, language, slices.Concat(command, flags, p.flags)))
		}
	}
	testzk.Eventually(t, func() bool {
		waiting, err := queue(testzk.Context(t))
		return err == nil && len(waiting) == p.inQueue(len(all)) || slices.ContainsFunc(all, (*portProcess).ended)
	}, "not all processes are in the queue")
	for _, process := range all {
		if process.ended() {
			process.finish(t, p.says)
			require.FailNow(t, "it did not wait", "%s has ended although the lock was held", process.name)
		}
	}
	require.NoError(t, hold.Release())
	said := map[string]int{}
	for _, process := range all {
		said[process.name] = process.finish(t, p.says)
	}
	t.Log(said)
	p.check(t, dir, said)
	require.Subset(t, p.stays, nodesBelow(t, client, path))
}

// nodesBelow returns all descendants of path.
func nodesBelow(t *testing.T, client *framework.Client, path string) (all []string) {
	t.Helper()
	children, _, err := client.Children(testzk.Context(t), path)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	require.NoError(t, err)
	for _, child := range children {
		all = append(all, child)
		for _, below := range nodesBelow(t, client, path+"/"+child) {
			all = append(all, child+"/"+below)
		}
	}
	return all
}

func keepMutex(ctx context.Context, c *framework.Client, path string) (*recipes.Hold, portQueue, error) {
	mu, err := mutex.New(c, path)
	if err != nil {
		return nil, nil, err
	}
	hold, err := mu.Acquire(ctx)
	return hold, mu.Participants, err
}

func keepReaders(ctx context.Context, c *framework.Client, path string) (*recipes.Hold, portQueue, error) {
	lock, err := rwlock.New(c, path)
	if err != nil {
		return nil, nil, err
	}
	hold, err := lock.Write().Acquire(ctx)
	return hold, lock.Read().Participants, err
}

func keepPool(ctx context.Context, c *framework.Client, path string) (*recipes.Hold, portQueue, error) {
	pool, err := semaphore.New(c, path, portLimit)
	if err != nil {
		return nil, nil, err
	}
	queue, err := mutex.New(c, path+"/locks")
	if err != nil {
		return nil, nil, err
	}
	hold, err := pool.AcquireN(ctx, portLimit)
	return hold, queue.Participants, err
}

// checkLimitedResource also checks that no process has a second turn before all have had one,
// because all were in the queue.
func checkLimitedResource(t *testing.T, dir string, said map[string]int) {
	t.Helper()
	turns := map[string]int{}
	for i, line := range portLines(t, dir, "users") {
		name := strings.Fields(line)[0]
		if i < len(said) {
			require.Zero(t, turns[name], "%s has a second turn while others wait for their first", name)
		}
		turns[name]++
	}
	require.Equal(t, said, turns)
	require.Equal(t, []string{strconv.Itoa(len(said) * portRounds)}, portLines(t, dir, "counter"))
	require.NoFileExists(t, filepath.Join(dir, "inside"))
}

func checkCache(t *testing.T, dir string, said map[string]int) {
	t.Helper()
	var want []string
	for name := range said {
		for i := range portRounds {
			want = append(want, fmt.Sprintf("%s-%d", name, i))
		}
	}
	require.ElementsMatch(t, want, portLines(t, dir, "list"))
	require.Equal(t, []string{strconv.Itoa(len(want))}, portLines(t, dir, "size"))
	for _, language := range []string{"java", "go"} {
		require.Positive(t, ofLanguage(said, language), "no process in %s has rebuilt the cache", language)
	}
}

// ofLanguage returns the sum of the numbers of the processes of a language.
func ofLanguage(said map[string]int, language string) (sum int) {
	for name, number := range said {
		if strings.HasPrefix(name, language+"-") {
			sum += number
		}
	}
	return sum
}

func checkPool(t *testing.T, dir string, said map[string]int) {
	t.Helper()
	var want []string
	for name := range said {
		for worker := range portWorkers {
			for i := range portRounds {
				want = append(want, fmt.Sprintf("%s-%d-%d", name, worker, i))
			}
		}
	}
	require.ElementsMatch(t, want, portFiles(t, filepath.Join(dir, "done")))
	require.Empty(t, portFiles(t, filepath.Join(dir, "running")))
	most := slices.Max(slices.Collect(maps.Values(said)))
	require.LessOrEqual(t, most, portLimit, "more jobs at a time than the limit")
}

func portLines(t *testing.T, dir, file string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, file))
	require.NoError(t, err)
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

func portFiles(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, file := range files {
		names = append(names, file.Name())
	}
	return names
}

// portProcess is a program that runs.
type portProcess struct {
	name           string // its name in the output and in the folder
	stdout, stderr bytes.Buffer
	done           chan struct{} // closed when the process has ended
	err            error         // of the process, valid once done is closed
}

func startPort(t *testing.T, language string, command []string) *portProcess {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	p := &portProcess{done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &p.stdout, &p.stderr, 5*time.Second
	require.NoError(t, cmd.Start())
	p.name = fmt.Sprintf("%s-%d", language, cmd.Process.Pid)
	go func() {
		defer close(p.done)
		p.err = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // fails if the process has ended, as it should
		<-p.done
	})
	return p
}

func (p *portProcess) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// finish waits until the process ends without an error, and returns the number in its output.
func (p *portProcess) finish(t *testing.T, pattern string) int {
	t.Helper()
	within(t, p.done, "%s does not end", p.name)
	require.NoError(t, p.err, "%s: %s%s", p.name, &p.stdout, &p.stderr)
	groups := regexp.MustCompile("^" + p.name + " " + pattern + "\n$").FindStringSubmatch(p.stdout.String())
	require.NotNil(t, groups, "%s says %q", p.name, &p.stdout)
	number, err := strconv.Atoi(groups[1])
	require.NoError(t, err)
	return number
}
