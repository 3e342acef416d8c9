package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/zktest/ensemble"
)

// zooKeeper is one server, or three.
type zooKeeper struct {
	*ensemble.Ensemble
	scratch string // of a server whose clock can be set
	clock   *Clock
}

func startZooKeeper(ctx context.Context, o Options) (_ Service, err error) {
	z := &zooKeeper{}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(z.scratch))
		}
	}()
	n, options := 1, []ensemble.Option{ensemble.WithTick(200 * time.Millisecond)}
	if o.Replicas {
		n = replicas
	}
	if o.Clock {
		d, err := z.distribution()
		if err != nil {
			return nil, err
		}
		options = append(options, ensemble.WithDistribution(d))
	}
	z.Ensemble, err = ensemble.New(ctx, n, options...)
	return z, err
}

// distribution returns one whose Java has a clock of its own.
func (z *zooKeeper) distribution() (d ensemble.Distribution, err error) {
	if d, err = ensemble.Find(); err != nil {
		return d, err
	}
	if z.scratch, err = folder("clock"); err != nil {
		return d, err
	}
	if z.clock, err = NewClock(z.scratch); err != nil {
		return d, err
	}
	script := fmt.Sprintf("#!/bin/sh\nexec env %s %s \"$@\"\n", strings.Join(z.clock.Env(), " "), d.Java)
	d.Java = filepath.Join(z.scratch, "java")
	return d, os.WriteFile(d.Java, []byte(script), 0o755)
}

func (z *zooKeeper) Addrs() []string { return strings.Split(z.Connect(), ",") }

func (z *zooKeeper) Restart(ctx context.Context, wipe bool) error {
	for _, s := range z.Servers() {
		if err := s.Kill(); err != nil {
			return err
		}
		if wipe {
			if err := s.Wipe(); err != nil {
				return err
			}
		}
		if err := s.Start(ctx); err != nil {
			return err
		}
	}
	return z.WaitReady(ctx)
}

// Lag does nothing: what the service has answered is on a majority of its servers.
func (z *zooKeeper) Lag(context.Context) error { return nil }

func (z *zooKeeper) Failover(ctx context.Context) error {
	leader, err := z.Leader(ctx)
	if err != nil {
		return err
	}
	if err := leader.Kill(); err != nil {
		return err
	}
	return z.WaitReady(ctx)
}

func (z *zooKeeper) SetClock() error { return z.clock.Set(Jump) }

// Delete deletes the node of a lock that is one node, or the first in the queue.
func (z *zooKeeper) Delete(ctx context.Context, lock string) error {
	conn, _, err := zk.Connect(z.Addrs(), 10*time.Second, zk.WithLogInfo(false), zk.WithLogger(driverSilence{}))
	if err != nil {
		return err
	}
	defer conn.Close()
	node := "/" + lock
	children, _, err := conn.Children(node)
	if err != nil {
		return err
	}
	if len(children) > 0 {
		node = path.Join(node, slices.MinFunc(children, bySequence))
	}
	return conn.Delete(node, -1)
}

// bySequence compares the names of sequential nodes by their numbers, the last ten characters.
func bySequence(a, b string) int {
	digits := func(name string) string { return name[max(0, len(name)-10):] }
	return strings.Compare(digits(a), digits(b))
}

// driverSilence drops what the driver logs of servers that fail.
type driverSilence struct{}

func (driverSilence) Printf(string, ...any) {}

func (z *zooKeeper) Requests(ctx context.Context) (sum int64, err error) {
	for _, s := range z.Servers() {
		if !s.Running() {
			continue
		}
		answer, err := s.Command(ctx, "mntr")
		if err != nil {
			return 0, err
		}
		for line := range strings.Lines(answer) {
			if text, ok := strings.CutPrefix(line, "zk_packets_received"); ok {
				n, err := number(text)
				if err != nil {
					return 0, err
				}
				sum += n
			}
		}
	}
	return sum, nil
}

func (z *zooKeeper) Close() error {
	err := z.Ensemble.Close()
	if z.scratch != "" {
		err = errors.Join(err, os.RemoveAll(z.scratch))
	}
	return err
}
