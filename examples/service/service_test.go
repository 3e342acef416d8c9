package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/leaks"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/zktest"
)

// patience is how long tests wait for what has to come. It only matters when a test fails.
const patience = time.Minute

// logs is a buffer that is safe for concurrent use.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// jobs are the jobs of a service under test. Each begins when the service has the lock, and ends when the
// test sends its result, or with the context.
type jobs struct {
	begun  chan context.Context
	result chan error
}

func (j jobs) job(ctx context.Context, _ int64) error {
	select {
	case j.begun <- ctx:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case err := <-j.result:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// begin waits for the next job.
func (j jobs) begin(t testing.TB) context.Context {
	t.Helper()
	select {
	case ctx := <-j.begun:
		return ctx
	case <-time.After(patience):
		require.Fail(t, "no job begins")
		return nil
	}
}

// end ends the job that has begun.
func (j jobs) end(t testing.TB, err error) {
	t.Helper()
	select {
	case j.result <- err:
	case <-time.After(patience):
		require.Fail(t, "no job waits for its end")
	}
}

// running is a service while it runs.
type running struct {
	*service
	jobs
	url   string
	stop  context.CancelFunc // as SIGTERM
	ended chan error
	logs  *logs
}

// launch starts a service on a server. Its sessions have the timeout of the configuration.
func launch(t testing.TB, server *zktest.Server, cfg config) *running {
	r := &running{
		jobs:  jobs{make(chan context.Context), make(chan error)},
		ended: make(chan error, 1), logs: &logs{},
	}
	cfg.connect, cfg.job = server.Addr(), r.job
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r.url = "http://" + listener.Addr().String()
	r.service, err = newService(cfg, slog.New(slog.NewTextHandler(r.logs, nil)))
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	go func() { r.ended <- r.run(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		_ = r.client.Close() // no hold is left to finish
		select {
		case <-r.ended:
		case <-time.After(patience):
			require.Fail(t, "the service does not end", "%s", r.logs)
		}
	})
	return r
}

// wait waits for the end of the service.
func (r *running) wait(t testing.TB) error {
	t.Helper()
	select {
	case err := <-r.ended:
		r.ended <- err // for the end of the test
		return err
	case <-time.After(patience):
		require.Fail(t, "the service does not end", "%s", r.logs)
		return nil
	}
}

// get returns the status and the body of a page.
func (r *running) get(t testing.TB, path string) (status int, body string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	response, err := client.Get(r.url + path)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(text)
}

// requireStatus waits until a page has a status.
func (r *running) requireStatus(t testing.TB, path string, status int) {
	t.Helper()
	testzk.Eventually(t, func() bool {
		got, _ := r.get(t, path)
		return got == status
	}, "%s does not answer %d", path, status)
}

// long is a configuration that ends nothing by time.
var long = config{session: time.Minute, grace: time.Hour}

// serviceEnv makes this test binary the service.
const serviceEnv = "DOCENT_EXAMPLE_SERVICE"

func TestMain(m *testing.M) {
	if os.Getenv(serviceEnv) != "" {
		main()
	}
	testzk.Widen()
	leaks.Main(m)
}

func TestJobIsFinishedAfterTheServiceWasStopped(t *testing.T) {
	server := zktest.Start(t)
	first, second := launch(t, server, long), launch(t, server, long)
	var working, waiting *running
	var job context.Context
	select {
	case job = <-first.begun:
		working, waiting = first, second
	case job = <-second.begun:
		working, waiting = second, first
	}
	working.requireStatus(t, "/readyz", http.StatusOK)
	waiting.requireStatus(t, "/readyz", http.StatusOK)

	working.stop()
	working.requireStatus(t, "/readyz", http.StatusServiceUnavailable)
	working.requireStatus(t, "/livez", http.StatusOK)
	require.NoError(t, job.Err(), "the job goes on")
	_, err := waiting.lock.TryAcquire(t.Context())
	require.ErrorIs(t, err, recipes.ErrNotAcquired, "the lock is still held")
	_, text := working.get(t, "/metrics")
	require.Contains(t, text, `docent_lock_held{recipe="mutex"} 1`)

	working.end(t, nil)
	require.NoError(t, working.wait(t))
	require.Contains(t, working.logs.String(), "the job is done")
	waiting.begin(t) // without the wait for a session timeout, which is a minute
	waiting.end(t, nil)
	for _, span := range []string{"docent.acquire", "docent.hold", "docent.release"} {
		require.Contains(t, working.logs.String(), "name="+span, "it was exported before the end")
	}
	require.Len(t, server.Sessions(), 1, "the session of the service that has ended is closed")
}

func TestServiceThatWaitsIsStoppedAtOnce(t *testing.T) {
	server := zktest.Start(t)
	working := launch(t, server, long)
	working.begin(t)
	waiting := launch(t, server, long)
	waiting.requireStatus(t, "/readyz", http.StatusOK)
	waiting.stop()
	require.NoError(t, waiting.wait(t))
	require.NotContains(t, waiting.logs.String(), "the job begins")
	require.NotContains(t, waiting.logs.String(), "not finished")
}

func TestJobThatTakesTooLongEnds(t *testing.T) {
	server := zktest.Start(t)
	r := launch(t, server, config{session: time.Minute, grace: time.Millisecond})
	job := r.begin(t)
	r.stop()
	testzk.Closes(t, job.Done(), "the job does not end")
	require.ErrorIs(t, context.Cause(job), errGrace)
	require.NoError(t, r.wait(t))
	require.Contains(t, r.logs.String(), "the last job was not finished")
	require.Empty(t, server.Sessions())
}

func TestServiceGoesOnAfterALostSession(t *testing.T) {
	server := zktest.Start(t)
	r := launch(t, server, long)
	job := r.begin(t)
	require.NoError(t, server.Sessions()[0].Expire())
	testzk.Closes(t, job.Done(), "the job does not end")
	require.ErrorIs(t, context.Cause(job), framework.ErrSessionLost)

	again := r.begin(t)
	require.NoError(t, again.Err())
	require.Contains(t, r.logs.String(), "the job is tried again")
	r.requireStatus(t, "/readyz", http.StatusOK)
	r.end(t, nil)
}

func TestServiceGoesOnWhenItsLockNodeIsDeleted(t *testing.T) {
	server := zktest.Start(t)
	r := launch(t, server, long)
	job := r.begin(t)
	holders, err := r.lock.Participants(t.Context())
	require.NoError(t, err)
	require.NoError(t, server.Delete(holders[0].Node))
	testzk.Closes(t, job.Done(), "the job does not end")
	require.ErrorIs(t, context.Cause(job), recipes.ErrNodeDeleted)
	r.begin(t)
	require.Contains(t, r.logs.String(), "the lock was taken away")
	r.end(t, nil)
}

func TestJobThatFailsEndsTheService(t *testing.T) {
	server := zktest.Start(t)
	r := launch(t, server, long)
	r.begin(t)
	failed := errors.New("the disk is full")
	r.end(t, failed)
	require.ErrorIs(t, r.wait(t), failed)
	require.Empty(t, server.Sessions())
}

// While the servers answer, a session is valid for nearly two thirds of its timeout.
func TestShortOutageIsHealthy(t *testing.T) {
	require.NoError(t, checkRest(20*time.Second, 30*time.Second))
	require.NoError(t, checkRest(10*time.Second, 30*time.Second))
	require.ErrorContains(t, checkRest(9*time.Second, 30*time.Second), "all holds end in 9s")
	require.Error(t, checkRest(-time.Second, 30*time.Second))
}

// A longer outage does not end the process.
func TestHealthDuringAnOutage(t *testing.T) {
	server := zktest.Start(t)
	r := launch(t, server, config{session: 4 * time.Second, grace: time.Hour})
	r.begin(t)
	r.requireStatus(t, "/readyz", http.StatusOK)
	server.Stop()
	testzk.Eventually(t, func() bool { return r.client.State() != framework.Connected }, "the outage is not noticed")
	r.requireStatus(t, "/readyz", http.StatusServiceUnavailable)
	r.requireStatus(t, "/livez", http.StatusOK)
	require.NoError(t, server.Start())
	r.requireStatus(t, "/readyz", http.StatusOK)
}

// A service may start before the servers.
func TestServiceStartsWithoutServers(t *testing.T) {
	server := zktest.Start(t)
	server.Stop()
	r := launch(t, server, long)
	r.requireStatus(t, "/livez", http.StatusOK)
	r.requireStatus(t, "/readyz", http.StatusServiceUnavailable)
	require.NoError(t, server.Start())
	r.begin(t)
	r.requireStatus(t, "/readyz", http.StatusOK)
	r.end(t, nil)
}

func TestMetricsOfTheLock(t *testing.T) {
	r := launch(t, zktest.Start(t), long)
	r.begin(t)
	r.end(t, nil)
	r.begin(t)
	_, text := r.get(t, "/metrics")
	for _, want := range []string{
		`docent_client_state{state="connected"} 1`,
		`docent_lock_held{recipe="mutex"} 1`,
		`docent_lock_hold_seconds_count{cause="released",recipe="mutex"} 1`,
	} {
		require.Contains(t, text, want)
	}
	require.Contains(t, r.logs.String(), "logger=docent", "the client logs to the same logger")
}
