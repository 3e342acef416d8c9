package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/counter"
	"github.com/docent-zk/docent/recipes/semaphore"
	"github.com/docent-zk/docent/zktest/proxy"
)

// makeNumbers creates limits, counters and what only looks like them, below the chroot of the test.
func makeNumbers(t testing.TB, chroot string) *framework.Client {
	t.Helper()
	c := testzk.Connected(t, testzk.Connect()+chroot)
	ctx := testzk.Context(t)
	shared, err := semaphore.New(c, "/exports", 3, semaphore.WithSharedLimit("/limits/exports"))
	require.NoError(t, err)
	acquire(t, shared)
	own, err := semaphore.New(c, "/imports", 4)
	require.NoError(t, err)
	acquire(t, own)
	for path, data := range map[string]string{
		"/count": "\x00\x00\x00\x07", "/count-1": "\xff\xff\xff\xff", "/atomic": "\x00\x00\x00\x01\x00\x00\x00\x00",
		"/text": "-41", "/four": "1234", "/eight": "-1234567", "/word": "true", "/config": `{"retries": 3}`,
		"/bytes": "\x00\x01", "/empty": "", "/fraction": "1.5", "/long": strings.Repeat("9", 30),
		"/colour": "\x1b[31m", "/nine": "9", "/top": "\x7f\xff\xff\xff",
	} {
		_, err := c.Create(ctx, path, []byte(data))
		require.NoError(t, err)
	}
	return c
}

// The outputs of docent limit and docent counter are those of a file.
func TestWhatNumbersLookLike(t *testing.T) {
	t.Parallel()
	chroot := testzk.Path(t)
	makeNumbers(t, chroot)
	var all strings.Builder
	for _, line := range []string{
		"limit /limits/exports", "limit /limits/exports 5", "limit /limits/exports", "limit -o json /limits/exports",
		"limit -o json /limits/exports 0", "limit /limits/exprots", "limit /limits/exprots 5",
		"limit /imports", "limit /imports 5", "limit -o json /imports", "limit /config", "limit /config 5",
		"limit /nine", "limit /nine 9", "limit --force /nine 9", "limit /nine", "limit /count-1", "limit /empty",
		"limit /empty 2", "limit --force /empty 2", "limit /empty", "limit --create /exprots /limits/imports 5",
		"limit --create /config /limits/imports 5", "limit --create /imports /limits/imports 5",
		"limit --create /imports /limits/imports 6", "limit --create /imports /imports/leases 6",

		"counter /count", "counter /count-1", "counter /atomic", "counter /text", "counter -o json /text",
		"counter /four", "counter --format text /four", "counter --format count /four", "counter /eight",
		"counter /word", "counter /config", "counter /bytes", "counter /fraction", "counter /long", "counter /colour",
		"counter --format atomic /count", "counter --format atomic /config set 1",
		"counter /count add 3", "counter /count add -11", "counter /count get", "counter /count set -3",
		"counter -o json /atomic add 1", "counter /atomic set 9000000000", "counter -o json /atomic set 2",
		"counter /text add 1", "counter /text set 7", "counter /text", "counter /top add 1",
		"counter /count add 4294967296", "counter /count set 4294967296", "counter /contu",
		"counter /contu add 1", "counter /nine2 set 3",
		"counter --create --format text /made add 5", "counter /made", "counter --create --format count /made2 set 5",
		"counter -o json --create --format atomic /made3 set 5", "counter --format count /top set 1",
		"counter --format atomic /bytes add 1",
	} {
		args := append([]string{"--connect", testzk.Connect() + chroot}, strings.Fields(line)...)
		cmd := docent(args...)
		cmd.Env = append(cmd.Env, "GORACE=atexit_sleep_ms=0") // the race detector would make each last a second
		code, out, errs := finishCommand(t, cmd)
		fmt.Fprintf(&all, "$ docent %s\n%s%s", line, out, errs)
		if code != 0 {
			fmt.Fprintf(&all, "exit code %d\n", code)
		}
		all.WriteString("\n")
	}
	file := filepath.Join("testdata", "numbers.txt")
	if *update {
		writeFile(t, file, all.String(), 0o644)
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(want), all.String(), "go test -run TestWhatNumbersLookLike -update writes the file")
}

func TestAWrongPathIsNeverWritten(t *testing.T) {
	t.Parallel()
	chroot := testzk.Path(t)
	c := makeNumbers(t, chroot)
	before := map[string]string{}
	for _, path := range []string{"/config", "/word", "/bytes", "/empty", "/fraction", "/imports"} {
		data, _, err := c.Get(testzk.Context(t), path)
		require.NoError(t, err)
		before[path] = string(data)
	}
	for _, line := range []string{"limit /wrong 5", "counter /wrong set 5", "counter --format count /wrong add 5"} {
		code, _, errs := finish(t, append([]string{"--connect", testzk.Connect() + chroot}, strings.Fields(line)...)...)
		assert.Equal(t, exitNoNode, code, errs)
	}
	at := []string{"--connect", testzk.Connect() + chroot}
	for path, data := range before {
		for _, verb := range []string{"limit %s 5", "counter %s set 5", "counter %s add 5"} {
			if path == "/imports" && verb != "limit %s 5" {
				continue // the limit that a semaphore notes has the format of a counter
			}
			line := fmt.Sprintf(verb, path)
			code, _, errs := finish(t, append(at, strings.Fields(line)...)...)
			assert.Contains(t, []int{exitData, exitUsage}, code, "%s: %s", line, errs)
		}
		now, _, err := c.Get(testzk.Context(t), path)
		require.NoError(t, err)
		assert.Equal(t, data, string(now), path)
	}
	_, err := c.Exists(testzk.Context(t), "/wrong")
	require.ErrorIs(t, err, zk.ErrNoNode)
}

// A holder waits for a second permit until docent raises the limit.
func TestANewLimitCountsAtOnce(t *testing.T) {
	t.Parallel()
	chroot := testzk.Path(t)
	c := testzk.Connected(t, testzk.Connect()+chroot)
	s, err := semaphore.New(c, "/exports", 1, semaphore.WithSharedLimit("/limits/exports"))
	require.NoError(t, err)
	acquire(t, s)
	queue(t, c, s, "/exports", 2)
	code, out, errs := finish(t, "--connect", testzk.Connect()+chroot, "limit", "/limits/exports", "2")
	require.Zero(t, code, errs)
	assert.Equal(t, "1 -> 2\n", out)
	testzk.Eventually(t, func() bool {
		o := shown(t, c, "/exports")
		return o.Holders == 2 && o.Waiters == 0
	}, "the waiter does not get the permit")
}

// Several docents and a program change one counter, and connections are lost. No change is lost or
// applied twice.
func TestChangesOfACounterAreAppliedOnce(t *testing.T) {
	t.Parallel()
	chroot := testzk.Path(t)
	c := testzk.Connected(t, testzk.Connect()+chroot)
	orders, err := counter.NewAtomic(c, "/orders")
	require.NoError(t, err)
	require.NoError(t, orders.Set(testzk.Context(t), math.MaxInt32))
	network := proxy.Start(t, strings.Split(testzk.Connect(), ",")[0])
	var all []*process
	for range 4 {
		all = append(all, start(t, "--connect", network.Addr()+chroot, "counter", "/orders", "add", "10"))
	}
	for range 20 {
		_, err := orders.Add(testzk.Context(t), 1)
		require.NoError(t, err)
		network.DropConnections()
	}
	for _, p := range all {
		assert.Zero(t, p.wait(), &p.errs)
	}
	sum, err := orders.Add(testzk.Context(t), 0)
	require.NoError(t, err)
	assert.Equal(t, int64(math.MaxInt32+4*10+20), sum)
}

func TestNumbersThatMayNotBeWrittenAreNamed(t *testing.T) {
	t.Parallel()
	chroot := testzk.Path(t)
	c := makeNumbers(t, chroot)
	for _, path := range []string{"/count", "/limits/exports"} {
		_, err := c.SetACL(testzk.Context(t), path, zk.WorldACL(zk.PermRead), -1)
		require.NoError(t, err)
	}
	for _, line := range []string{"counter /count add 1", "counter /count set 1", "limit /limits/exports 1"} {
		code, _, errs := finish(t, append([]string{"--connect", testzk.Connect() + chroot}, strings.Fields(line)...)...)
		assert.Equal(t, exitRefused, code, line)
		assert.Contains(t, errs, "no permission")
	}
	for _, line := range []string{"counter /count", "limit /limits/exports"} {
		code, _, errs := finish(t, append([]string{"--connect", testzk.Connect() + chroot}, strings.Fields(line)...)...)
		assert.Zero(t, code, errs)
	}
}

func FuzzFormatOf(f *testing.F) {
	for _, data := range []string{"", "1234", "12", "-1234567", "\x00\x00\x00\x07", "true", "\xff\xff\xff\xff1234"} {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		format, err := formatOf(data)
		if err != nil {
			assert.Empty(t, format)
			return
		}
		for _, other := range []string{formatCount, formatAtomic, formatText} {
			if _, err := numberOf(data, other); err == nil {
				assert.Equal(t, format, other, "%q has two formats", data)
			}
		}
	})
}
