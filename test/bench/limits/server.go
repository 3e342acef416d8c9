package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/zktest/ensemble"
)

// server is a real server with a client.
type server struct {
	scratch  string
	ensemble *ensemble.Ensemble
	client   *framework.Client
	others   []*framework.Client // whose sessions are counted
}

// lockNode is a name such as docent and Curator give a lock node.
const lockNode = "/_c_8026b758-0c64-4418-a4a7-a40067d845c1-lock-"

func start(ctx context.Context) (_ *server, err error) {
	s := &server{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.scratch, err = os.MkdirTemp("", "docent-limits-"); err != nil {
		return nil, err
	}
	before := os.TempDir()
	if err := os.Setenv("TMPDIR", s.scratch); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.Setenv("TMPDIR", before)) }()
	if s.ensemble, err = ensemble.New(ctx, 1, ensemble.WithProperty("zookeeper.forceSync", "no"),
		ensemble.WithProperty("znode.container.checkIntervalMs", "1000"),
		ensemble.WithSessionTimeouts(4*time.Second, 10*time.Minute)); err != nil {
		return nil, err
	}
	s.client, err = s.newClient(ctx)
	return s, err
}

func (s *server) newClient(ctx context.Context) (*framework.Client, error) {
	c, err := framework.New(s.ensemble.Connect(), framework.WithSessionTimeout(10*time.Minute))
	if err != nil {
		return nil, err
	}
	if err := c.WaitConnected(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (s *server) close() (err error) {
	for _, c := range append(s.others, s.client) {
		if c != nil {
			err = errors.Join(err, c.Close())
		}
	}
	if s.ensemble != nil {
		err = errors.Join(err, s.ensemble.Close())
	}
	return errors.Join(err, os.RemoveAll(s.scratch))
}

// lockPath returns the path of lock i. There are a thousand in each directory.
func lockPath(i int) string { return fmt.Sprintf("/locks/%d/order-%d", i/1000, i) }

// inBlocks calls do with the numbers below n, in blocks of at most a thousand.
func inBlocks(n int, do func(from, to int) error) error {
	for from := 0; from < n; from += 1000 {
		if err := do(from, min(from+1000, n)); err != nil {
			return err
		}
	}
	return nil
}

// paths creates the directories of locks.
func (s *server) paths(ctx context.Context, n int) error {
	return parallel(n, func(i int) error { return s.client.CreateContainers(ctx, lockPath(i)) })
}

// locks creates a lock node in each directory.
func (s *server) locks(ctx context.Context, n int) error {
	session, err := s.client.Session(ctx)
	if err != nil {
		return err
	}
	return inBlocks(n, func(from, to int) error {
		var ops []framework.Op
		for i := from; i < to; i++ {
			ops = append(ops, framework.CreateOp(lockPath(i)+lockNode, []byte("192.168.1.10"),
				framework.Ephemeral(), framework.Sequential()))
		}
		_, err := session.Multi(ctx, ops...)
		return err
	})
}

// watches watches each lock node.
func (s *server) watches(ctx context.Context, n int) error {
	session, err := s.client.Session(ctx)
	if err != nil {
		return err
	}
	return parallel(n, func(i int) error {
		_, _, _, err := session.GetW(ctx, lockPath(i)+lockNode+"0000000000")
		return err
	})
}

// connect opens sessions.
func (s *server) connect(ctx context.Context, n int) error {
	var mu sync.Mutex
	return parallel(n, func(int) error {
		c, err := s.newClient(ctx)
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			s.others = append(s.others, c)
		}
		return err
	})
}

// parallel calls do with the numbers below n, in several goroutines.
func parallel(n int, do func(i int) error) error {
	const workers = 32
	errs := make([]error, workers)
	var running sync.WaitGroup
	for w := range workers {
		running.Go(func() {
			for i := w; i < n && errs[w] == nil; i += workers {
				errs[w] = do(i)
			}
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

// size is what a server has on disk and in memory, in bytes.
type size struct{ snapshot, heap int64 }

// size restarts the server, which writes a snapshot when it starts.
func (s *server) size(ctx context.Context) (z size, err error) {
	if _, err := s.restart(ctx); err != nil {
		return z, err
	}
	if z.heap, err = s.heap(ctx); err != nil {
		return z, err
	}
	z.snapshot, err = s.snapshot()
	return z, err
}

// restart returns the time until the server serves again and all clients have connected.
func (s *server) restart(ctx context.Context) (time.Duration, error) {
	one := s.ensemble.Servers()[0]
	if err := one.Stop(); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := one.Start(ctx); err != nil {
		return 0, err
	}
	if err := s.ensemble.WaitReady(ctx); err != nil {
		return 0, err
	}
	took := time.Since(began)
	for _, c := range append(s.others, s.client) {
		if err := c.Sync(ctx, "/"); err != nil {
			return 0, err
		}
	}
	return took, nil
}

// heap returns the bytes of live objects.
func (s *server) heap(ctx context.Context) (int64, error) {
	pid, err := s.pid()
	if err != nil {
		return 0, err
	}
	out, err := exec.CommandContext(ctx, "jmap", "-histo:live", pid).Output()
	if err != nil {
		return 0, fmt.Errorf("jmap: %w", err)
	}
	fields := strings.Fields(string(out[bytes.LastIndex(out, []byte("Total")):]))
	if len(fields) < 3 {
		return 0, errors.New("jmap: no total")
	}
	return strconv.ParseInt(fields[2], 10, 64)
}

// pid returns the process of the server, which has the scratch folder in its arguments.
func (s *server) pid() (string, error) {
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return "", err
	}
	for _, file := range all {
		words, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(words), s.scratch) {
			return filepath.Base(filepath.Dir(file)), nil
		}
	}
	return "", errors.New("no process of the server")
}

// snapshot returns the size of the newest snapshot.
func (s *server) snapshot() (bytes int64, err error) {
	var newest time.Time
	err = filepath.WalkDir(s.scratch, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasPrefix(d.Name(), "snapshot.") {
			return err
		}
		info, err := d.Info()
		if err == nil && info.ModTime().After(newest) {
			newest, bytes = info.ModTime(), info.Size()
		}
		return err
	})
	return bytes, err
}

// used creates directories of locks that have had a lock node.
func (s *server) used(ctx context.Context, n int) error {
	if err := s.paths(ctx, n); err != nil {
		return err
	}
	return inBlocks(n, func(from, to int) error {
		var ops []framework.Op
		for i := from; i < to; i++ {
			node := lockPath(i) + "/lock"
			ops = append(ops, framework.CreateOp(node, nil), framework.DeleteOp(node, -1))
		}
		_, err := s.client.Multi(ctx, ops...)
		return err
	})
}

// count is the number of directories at a time.
type count struct {
	at   time.Time
	left int
}

// deleted waits until the server has deleted most of the directories. It returns the first count at
// which some were deleted, and the last one.
func (s *server) deleted(ctx context.Context) (first, last count, err error) {
	all := 0
	for ctx.Err() == nil {
		now, err := s.count(ctx)
		switch {
		case err != nil:
			return first, last, err
		case now.left > all:
			all = now.left
		case first.left == 0 && now.left < all:
			first = now
		case now.left < all/5:
			return first, now, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return first, last, ctx.Err()
}

func (s *server) count(ctx context.Context) (c count, err error) {
	groups, _, err := s.client.Children(ctx, "/locks")
	for _, group := range groups {
		stat, err := s.client.Exists(ctx, "/locks/"+group)
		if err != nil {
			return c, err
		}
		if stat != nil {
			c.left += int(stat.NumChildren)
		}
	}
	c.at = time.Now()
	return c, err
}
