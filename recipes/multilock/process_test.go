package multilock_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/multilock"
)

// The test binary is also the processes that contend: with these set in the environment it takes locks and runs no test.
const (
	processServers = "DOCENT_MULTILOCK_SERVERS"
	processPaths   = "DOCENT_MULTILOCK_PATHS" // in their order, with commas
	processDir     = "DOCENT_MULTILOCK_DIR"   // where there is a file for each path
	processRounds  = "DOCENT_MULTILOCK_ROUNDS"
)

func init() {
	servers := os.Getenv(processServers)
	if servers == "" {
		return
	}
	time.AfterFunc(2*testzk.Patience, func() { os.Exit(3) }) // whatever becomes of its parent
	rounds, err := strconv.Atoi(os.Getenv(processRounds))
	if err == nil {
		err = process(servers, strings.Split(os.Getenv(processPaths), ","), os.Getenv(processDir), rounds)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// process takes both locks, again and again, and counts in the file of each.
func process(servers string, paths []string, dir string, rounds int) error {
	client, err := framework.New(servers, framework.WithSessionTimeout(30*time.Second)) // none is to end by itself
	if err != nil {
		return err
	}
	defer client.Close()
	m, err := multilock.New(client, paths)
	if err != nil {
		return err
	}
	for range rounds {
		hold, err := m.Acquire(context.Background())
		if err != nil {
			return err
		}
		for _, path := range paths {
			err = errors.Join(err, increment(counter(dir, path)))
		}
		if err := errors.Join(err, hold.Release()); err != nil {
			return err
		}
	}
	return nil
}

func counter(dir, path string) string { return filepath.Join(dir, filepath.Base(path)) }

// increment loses a count, or more, if somebody else does the same at the same time.
func increment(file string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if len(b) != 8 {
		return fmt.Errorf("%s is being written by somebody else", file)
	}
	return os.WriteFile(file, binary.BigEndian.AppendUint64(nil, binary.BigEndian.Uint64(b)+1), 0o600)
}

func TestTwoProcessesWithOppositeOrdersNeitherDeadlockNorShare(t *testing.T) {
	t.Parallel()
	const rounds = 1000 // of each
	paths, dir := named(t, 2), t.TempDir()
	for _, path := range paths {
		require.NoError(t, os.WriteFile(counter(dir, path), make([]byte, 8), 0o600))
	}
	began := time.Now()
	contend(t, 2, func(i int) error {
		return runProcess(paths[i], paths[1-i], dir, rounds)
	})
	t.Logf("%d holds of two locks in %v", 2*rounds, time.Since(began))
	for _, path := range paths {
		b, err := os.ReadFile(counter(dir, path))
		require.NoError(t, err)
		require.EqualValues(t, 2*rounds, binary.BigEndian.Uint64(b), "counts of %s are lost", path)
	}
	free(t, paths...)
}

func runProcess(first, second, dir string, rounds int) error {
	if os.Getenv(processServers) != "" {
		return errors.New("such a process must not start another")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*testzk.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), processServers+"="+testzk.Connect(), processPaths+"="+first+","+second, processDir+"="+dir,
		processRounds+"="+strconv.Itoa(rounds))
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, &said)
	}
	return nil
}
