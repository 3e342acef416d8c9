package service

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// redisServer is a server that writes each change to its disk before it answers: with the defaults of
// Redis a restart loses a part of them.
type redisServer struct {
	process
	addr  string
	admin *redis.Client
}

// silence drops what the client logs of servers that fail.
type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

func init() { redis.SetLogger(silence{}) } // of servers that are killed

func newRedis(ctx context.Context, clock bool, args ...string) (*redisServer, error) {
	binary, err := program("redis-server", "redis-server")
	if err != nil {
		return nil, err
	}
	dir, err := folder("redis")
	if err != nil {
		return nil, err
	}
	ports, err := takePorts(1)
	if err != nil {
		return nil, err
	}
	s := &redisServer{process: process{dir: dir, ports: ports}, addr: ports[0].Addr()}
	s.command = append([]string{binary, "--port", portOf(s.addr), "--bind", "127.0.0.1", "--dir", dir, "--save", "",
		"--appendonly", "yes", "--appendfsync", "always", "--repl-diskless-sync-delay", "0"}, args...)
	s.admin = redis.NewClient(&redis.Options{Addr: s.addr, ContextTimeoutEnabled: true})
	if clock {
		if s.clock, err = NewClock(dir); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	if err := s.begin(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// begin starts the server and waits until it answers.
func (s *redisServer) begin(ctx context.Context) error {
	if err := s.start(); err != nil {
		return err
	}
	return await(ctx, func() error { return errors.Join(s.alive(), s.admin.Ping(ctx).Err()) })
}

func (s *redisServer) Restart(ctx context.Context, wipe bool) error {
	s.kill()
	if wipe {
		if err := os.RemoveAll(filepath.Join(s.dir, "appendonlydir")); err != nil {
			return err
		}
	}
	return s.begin(ctx)
}

func (s *redisServer) SetClock() error { return s.clock.Set(Jump) }

func (s *redisServer) delete(ctx context.Context, lock string) error {
	return s.admin.Del(ctx, lock, "docent:"+lock).Err()
}

// Requests counts what is read from connections: commands within a script are none.
func (s *redisServer) Requests(ctx context.Context) (int64, error) {
	info, err := s.admin.InfoMap(ctx, "stats").Result()
	if err != nil {
		return 0, err
	}
	return number(info["Stats"]["total_reads_processed"])
}

func (s *redisServer) Close() error {
	s.kill()
	s.ports.close()
	return errors.Join(s.admin.Close(), os.RemoveAll(s.dir))
}

// oneRedis is a server, perhaps with a replica.
type oneRedis struct {
	*redisServer
	replica *redisServer // nil: none
	link    *Link        // to the replica

	mu   sync.Mutex
	addr string // of the server that answers
}

func startRedis(ctx context.Context, o Options) (Service, error) {
	master, err := newRedis(ctx, o.Clock)
	if err != nil {
		return nil, err
	}
	s := &oneRedis{redisServer: master, addr: master.addr}
	if !o.Replicas {
		return s, nil
	}
	if s.link, err = NewLink(func() string { return master.addr }); err == nil {
		s.replica, err = newRedis(ctx, false, "--replicaof", "127.0.0.1 "+portOf(s.link.Addr()))
	}
	if err == nil {
		err = await(ctx, func() error { return s.replicated(ctx) })
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *oneRedis) replicated(ctx context.Context) error {
	info, err := s.replica.admin.Info(ctx, "replication").Result()
	if err == nil && !strings.Contains(info, "master_link_status:up") {
		err = errors.New("the replica has no link")
	}
	return err
}

func (s *oneRedis) Addrs() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return []string{s.addr}
}

// Lag cuts the link to the replica, when it has everything.
func (s *oneRedis) Lag(ctx context.Context) error {
	if s.replica == nil {
		return nil
	}
	err := await(ctx, func() error {
		info, err := s.admin.InfoMap(ctx, "replication").Result()
		if err != nil {
			return err
		}
		if all := info["Replication"]; !strings.Contains(all["slave0"], "offset="+all["master_repl_offset"]+",") {
			return errBehind
		}
		return nil
	})
	s.link.Cut(true)
	return err
}

// Failover does what Sentinel does.
func (s *oneRedis) Failover(ctx context.Context) error {
	s.kill()
	if err := s.replica.admin.ReplicaOf(ctx, "NO", "ONE").Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addr = s.replica.addr
	return nil
}

func (s *oneRedis) Delete(ctx context.Context, lock string) error { return s.delete(ctx, lock) }

func (s *oneRedis) Close() error {
	err := s.redisServer.Close()
	if s.replica != nil {
		err = errors.Join(err, s.replica.Close())
	}
	if s.link != nil {
		s.link.Close()
	}
	return err
}

// masters are independent servers. The failures of a server are those of the first one.
type masters struct{ all []*redisServer }

// Masters is the number of independent masters of Redlock. A lock needs the majority.
const Masters = 5

func startMasters(ctx context.Context, o Options) (Service, error) {
	m := &masters{}
	for i := range Masters {
		s, err := newRedis(ctx, o.Clock && i == 0)
		if err != nil {
			return nil, errors.Join(err, m.Close())
		}
		m.all = append(m.all, s)
	}
	return m, nil
}

func (m *masters) Addrs() (addrs []string) {
	for _, s := range m.all {
		addrs = append(addrs, s.addr)
	}
	return addrs
}

func (m *masters) Restart(ctx context.Context, wipe bool) error { return m.all[0].Restart(ctx, wipe) }
func (m *masters) Lag(context.Context) error                    { return nil }
func (m *masters) SetClock() error                              { return m.all[0].SetClock() }

func (m *masters) Failover(context.Context) error {
	return unsupported("independent masters have no replicas")
}

func (m *masters) Delete(ctx context.Context, lock string) (err error) {
	for _, s := range m.all {
		err = errors.Join(err, s.delete(ctx, lock))
	}
	return err
}

func (m *masters) Requests(ctx context.Context) (sum int64, err error) {
	for _, s := range m.all {
		n, failed := s.Requests(ctx)
		sum, err = sum+n, errors.Join(err, failed)
	}
	return sum, err
}

func (m *masters) Close() (err error) {
	for _, s := range m.all {
		err = errors.Join(err, s.Close())
	}
	return err
}
