package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/docent-zk/docent/test/bench/report"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/ensemble"
)

// settings are the setups of servers.
var settings = []report.Setting{
	{Name: "memory", Servers: 1},
	{Name: "disk", Servers: 1, Fsync: true},
	{Name: "memory-3", Servers: 3},
	{Name: "disk-3", Servers: 3, Fsync: true},
}

// site is the servers of one setting.
type site struct {
	ensemble *ensemble.Ensemble
	etcd     *exec.Cmd // nil if there is none
	etcdAddr string
	scratch  string
}

// fullCompiler reverts the option by which package ensemble starts faster. Java reads this variable
// last.
const fullCompiler = "-XX:TieredStopAtLevel=4"

// build starts the servers of a setting. A single server has a server of etcd beside it, if that is
// installed.
func build(ctx context.Context, s *report.Setting) (_ *site, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	sync := "no"
	if s.Dir = memory(); s.Fsync {
		s.Dir, sync = disk(), "yes"
	}
	b := &site{}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	if err := os.Setenv("_JAVA_OPTIONS", fullCompiler); err != nil {
		return nil, err
	}
	if b.ensemble, err = inFolder(s.Dir, func() (*ensemble.Ensemble, error) {
		return ensemble.New(ctx, s.Servers, ensemble.WithProperty("zookeeper.forceSync", sync))
	}); err != nil {
		return nil, err
	}
	if s.Servers == 1 {
		if err := b.startEtcd(ctx, s.Dir); err != nil {
			s.Absent = append(s.Absent, fmt.Sprintf("etcd: %v", err))
		}
	}
	return b, nil
}

// inFolder calls fn with the temporary folder dir.
func inFolder[T any](dir string, fn func() (T, error)) (T, error) {
	const variable = "TMPDIR"
	before, there := os.LookupEnv(variable)
	defer func() {
		if there {
			_ = os.Setenv(variable, before)
		} else {
			_ = os.Unsetenv(variable)
		}
	}()
	if err := os.Setenv(variable, dir); err != nil {
		var none T
		return none, err
	}
	return fn()
}

// roomy is the space that servers need at most.
const roomy = 4 << 30

// memory returns a folder in memory, where there is one that is large enough.
func memory() string {
	const shm = "/dev/shm"
	if space(shm) >= roomy {
		return shm
	}
	return os.TempDir()
}

// disk returns a folder that survives a restart of the machine.
func disk() string {
	const persistent = "/var/tmp"
	if info, err := os.Stat(persistent); err == nil && info.IsDir() {
		return persistent
	}
	return os.TempDir()
}

// space returns the number of free bytes, and 0 if that is not known.
func space(dir string) int64 {
	out, err := exec.Command("df", "-Pk", dir).Output()
	if err != nil {
		return 0
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	fields := strings.Fields(lines[len(lines)-1])
	if len(fields) < 4 {
		return 0
	}
	kib, _ := strconv.ParseInt(fields[3], 10, 64)
	return kib << 10
}

func (b *site) startEtcd(ctx context.Context, dir string) error {
	program, err := exec.LookPath("etcd")
	if err != nil {
		return errors.New("not installed: apt-get install etcd-server")
	}
	if b.scratch, err = os.MkdirTemp(dir, "docent-etcd-"); err != nil {
		return err
	}
	ports, err := freePorts(2)
	if err != nil {
		return err
	}
	b.etcdAddr = ports[0]
	here, others := "http://"+ports[0], "http://"+ports[1]
	cmd := exec.Command(program, "--data-dir", filepath.Join(b.scratch, "data"), "--log-level", "error",
		"--listen-client-urls", here, "--advertise-client-urls", here, "--listen-peer-urls", others,
		"--initial-advertise-peer-urls", others, "--initial-cluster", "default="+others)
	if err := cmd.Start(); err != nil {
		return err
	}
	b.etcd = cmd
	return healthy(ctx, here+"/health")
}

func freePorts(n int) (addrs []string, err error) {
	for range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer listener.Close() // closed together, so that the addresses differ
		addrs = append(addrs, listener.Addr().String())
	}
	return addrs, nil
}

// healthy waits until a server reports that it is healthy.
func healthy(ctx context.Context, url string) error {
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(request)
		if err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
		}
		if ctx.Err() != nil {
			return errors.Join(ctx.Err(), err)
		}
		rest(ctx, 50*time.Millisecond)
	}
}

func rest(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func (b *site) close() (err error) {
	if b.ensemble != nil {
		err = b.ensemble.Close()
	}
	if b.etcd != nil {
		_ = b.etcd.Process.Kill()
		_ = b.etcd.Wait()
	}
	if b.scratch != "" {
		err = errors.Join(err, os.RemoveAll(b.scratch))
	}
	return err
}

func (b *site) servers(name string) string {
	if name == "etcd" {
		return b.etcdAddr
	}
	return b.ensemble.Connect()
}

// commits returns the counter in the leader's last transaction id.
func (b *site) commits(ctx context.Context, name string) (int64, error) {
	if name == "etcd" {
		return 0, nil
	}
	leader, err := b.ensemble.Leader(ctx)
	if err != nil {
		return 0, err
	}
	zxid, err := status(ctx, leader, "Zxid")
	return zxid & 0xffffffff, err
}

// received returns the number of requests that all servers have received from clients.
func (b *site) received(ctx context.Context) (sum int64, err error) {
	for _, s := range b.ensemble.Servers() {
		n, err := status(ctx, s, "Received")
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// status returns a number of what a server says about itself.
func status(ctx context.Context, s *ensemble.Server, name string) (int64, error) {
	answer, err := s.Command(ctx, "srvr")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(answer) {
		if key, value, _ := strings.Cut(strings.TrimSpace(line), ": "); key == name {
			return strconv.ParseInt(value, 0, 64)
		}
	}
	return 0, fmt.Errorf("no %s in %q", name, answer)
}

// follower returns the address of a server that does not lead.
func (b *site) follower(ctx context.Context) (string, error) {
	leader, err := b.ensemble.Leader(ctx)
	if err != nil {
		return "", err
	}
	for _, s := range b.ensemble.Servers() {
		if s != leader {
			return s.Addr(), nil
		}
	}
	return "", errors.New("no follower")
}

// oneOf is the servers of a site. Peers use only the one with the address, because a connection to the
// leader is faster than one to a follower.
type oneOf struct {
	*site
	addr string
}

func (o oneOf) servers(name string) string {
	if name == "etcd" {
		return ""
	}
	return o.addr
}

// at returns the servers for a workload. leave ends what was started for it alone.
func (b *site) at(ctx context.Context, w workload) (_ place, leave func(), err error) {
	switch {
	case w.inProcess:
		srv, err := zktest.New(zktest.WithConfig("znode.container.checkIntervalMs", "1000"))
		if err != nil {
			return nil, nil, err
		}
		return counting{srv}, srv.Close, nil
	case len(b.ensemble.Servers()) == 1:
		return b, func() {}, nil
	}
	target, err := b.follower(ctx)
	switch {
	case err != nil:
		return nil, nil, err
	case !w.far:
		return oneOf{b, target}, func() {}, nil
	}
	l, err := newLink(target, report.Trip)
	if err != nil {
		return nil, nil, err
	}
	return oneOf{b, l.addr()}, l.close, nil
}

func (b *site) kill() error { return b.ensemble.Servers()[0].Kill() }

func (b *site) revive(ctx context.Context) error {
	if err := b.ensemble.Servers()[0].Start(ctx); err != nil {
		return err
	}
	return b.ensemble.WaitReady(ctx)
}
