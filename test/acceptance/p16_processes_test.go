package acceptance_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/multilock"
)

// The test binary is also the processes that contend. If these variables are set in the
// environment, it takes locks and runs no test.
const (
	p16Servers = "DOCENT_P16_SERVERS"
	p16Paths   = "DOCENT_P16_PATHS" // in order, separated by commas
	p16Dir     = "DOCENT_P16_DIR"   // has a file for each path
	p16Rounds  = "DOCENT_P16_ROUNDS"
)

func init() {
	servers := os.Getenv(p16Servers)
	if servers == "" {
		return
	}
	rounds, err := strconv.Atoi(os.Getenv(p16Rounds))
	if err == nil {
		err = p16Process(servers, strings.Split(os.Getenv(p16Paths), ","), os.Getenv(p16Dir), rounds)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// p16Process acquires and releases all locks repeatedly, and counts in the file of each.
func p16Process(servers string, paths []string, dir string, rounds int) error {
	client, err := framework.New(servers, long())
	if err != nil {
		return err
	}
	defer client.Close()
	m, err := multilock.New(client, paths)
	if err != nil {
		return err
	}
	hang := time.AfterFunc(testzk.Patience, func() { os.Exit(3) }) // also if the parent process dies
	for range rounds {
		hang.Reset(testzk.Patience)
		hold, err := m.Acquire(context.Background())
		if err != nil {
			return err
		}
		for _, path := range paths {
			err = errors.Join(err, p16Count(filepath.Join(dir, filepath.Base(path))))
		}
		if err := errors.Join(err, hold.Release()); err != nil {
			return err
		}
	}
	return nil
}

// p16Count adds one to the number in a file. If another process does so at the same time, one of
// the two is lost, or the file has no number.
func p16Count(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(string(text))
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(strconv.Itoa(n+1)), 0o600)
}

// Two processes lock the same two locks, one in the order {a, b}, the other in the order {b, a}.
// They do so 1,000 times altogether, and 10,000 times in "make seeds". There is no deadlock, and no
// two processes are under both locks at the same time.
func TestP16_OppositeOrdersDoNotDeadlock(t *testing.T) {
	t.Parallel()
	rounds := often(t)
	require.Empty(t, os.Getenv(p16Servers), "a child process must not start another")
	root, dir := testzk.Path(t), t.TempDir()
	for _, name := range []string{"a", "b"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("0"), 0o600))
	}
	var errs [2]error
	var running sync.WaitGroup
	for i, order := range []string{root + "/a," + root + "/b", root + "/b," + root + "/a"} {
		running.Go(func() { errs[i] = p16Run(order, dir, rounds/2) })
	}
	running.Wait()
	require.NoError(t, errors.Join(errs[:]...))
	for _, name := range []string{"a", "b"} {
		count, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, strconv.Itoa(rounds), string(count), "the lock %s did not exclude", name)
	}
}

func p16Run(order, dir string, rounds int) error {
	cmd := exec.Command(os.Args[0], "-test.run=^$") // it bounds the time of each of its rounds
	cmd.Env = append(os.Environ(), p16Servers+"="+testzk.Connect(), p16Paths+"="+order, p16Dir+"="+dir,
		p16Rounds+"="+strconv.Itoa(rounds))
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, &said)
	}
	return nil
}
