package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

func number(text string) (int64, error) {
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	return int64(n), err
}

type etcdServer struct {
	process
	addr string
}

// etcd is one server, or three.
type etcd struct {
	all   []*etcdServer
	ports ports
	admin *clientv3.Client
}

// replicas is the number of servers of a service that agrees by a majority and can fail over.
const replicas = 3

func startEtcd(ctx context.Context, o Options) (_ Service, err error) {
	if o.Clock {
		return nil, unsupported("it is written in Go, which does not ask the C library for the time")
	}
	binary, err := program("etcd", "etcd-server")
	if err != nil {
		return nil, err
	}
	n := 1
	if o.Replicas {
		n = replicas
	}
	ports, err := takePorts(2 * n)
	if err != nil {
		return nil, err
	}
	e := &etcd{ports: ports}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Close())
		}
	}()
	var cluster []string
	for i := range n {
		cluster = append(cluster, fmt.Sprintf("s%d=http://%s", i, ports[n+i].Addr()))
	}
	for i := range n {
		dir, err := folder("etcd")
		if err != nil {
			return nil, err
		}
		here, others := "http://"+ports[i].Addr(), "http://"+ports[n+i].Addr()
		e.all = append(e.all, &etcdServer{addr: ports[i].Addr(), process: process{dir: dir, command: []string{
			binary, "--name", fmt.Sprint("s", i), "--data-dir", filepath.Join(dir, "data"), "--log-level", "fatal",
			"--listen-client-urls", here, "--advertise-client-urls", here, "--listen-peer-urls", others,
			"--initial-advertise-peer-urls", others, "--initial-cluster", strings.Join(cluster, ","),
		}}})
	}
	for _, s := range e.all {
		if err := s.start(); err != nil {
			return nil, err
		}
	}
	if e.admin, err = clientv3.New(clientv3.Config{Endpoints: e.Addrs(), Logger: zap.NewNop()}); err != nil {
		return nil, err
	}
	return e, e.ready(ctx)
}

// ready waits until all servers can write.
func (e *etcd) ready(ctx context.Context) error {
	for _, s := range e.all {
		if s.cmd == nil {
			continue
		}
		if err := await(ctx, func() error { return errors.Join(s.alive(), s.healthy(ctx)) }); err != nil {
			return err
		}
	}
	return nil
}

func (s *etcdServer) healthy(ctx context.Context) error {
	_, err := s.get(ctx, "/health")
	return err
}

func (s *etcdServer) get(ctx context.Context, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.addr+path, nil)
	if err != nil {
		return "", err
	}
	request.Close = true
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if answer.StatusCode != http.StatusOK {
		err = errors.Join(err, errors.New(answer.Status))
	}
	return string(text), err
}

func (e *etcd) Addrs() (addrs []string) {
	for _, s := range e.all {
		addrs = append(addrs, s.addr)
	}
	return addrs
}

func (e *etcd) Restart(ctx context.Context, wipe bool) error {
	for _, s := range e.all {
		s.kill()
		if wipe {
			if err := os.RemoveAll(filepath.Join(s.dir, "data")); err != nil {
				return err
			}
		}
		if err := s.start(); err != nil {
			return err
		}
	}
	return e.ready(ctx)
}

// Lag does nothing: what the service has answered is on a majority of its servers.
func (e *etcd) Lag(context.Context) error { return nil }

func (e *etcd) Failover(ctx context.Context) error {
	for {
		for _, s := range e.all {
			status, err := e.admin.Status(ctx, s.addr)
			if err == nil && status.Leader == status.Header.MemberId {
				s.kill()
				return e.ready(ctx)
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

func (e *etcd) SetClock() error { return unsupported("its clock cannot be set") }

func (e *etcd) Delete(ctx context.Context, lock string) error {
	first, err := e.admin.Get(ctx, lock+"/", clientv3.WithFirstCreate()...)
	if err != nil {
		return err
	}
	for _, kv := range first.Kvs {
		_, err = e.admin.Delete(ctx, string(kv.Key))
	}
	return err
}

// Requests counts the messages of clients.
func (e *etcd) Requests(ctx context.Context) (sum int64, err error) {
	for _, s := range e.all {
		text, err := s.get(ctx, "/metrics")
		if err != nil {
			return 0, err
		}
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "grpc_server_msg_received_total") {
				n, err := number(line[strings.LastIndex(line, " ")+1:])
				if err != nil {
					return 0, err
				}
				sum += n
			}
		}
	}
	return sum, nil
}

func (e *etcd) Close() (err error) {
	if e.admin != nil {
		err = e.admin.Close()
	}
	for _, s := range e.all {
		s.kill()
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	e.ports.close()
	return err
}
