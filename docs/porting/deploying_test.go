package porting

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/leader"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
)

// fragment deploying-ready

// ready answers 200 while the ZooKeeper leader answers the client, and 503 otherwise. It makes no
// request to the servers.
func ready(client *framework.Client) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		session, err := client.Session(ctx)
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		if left := time.Until(session.ValidUntil()); left < session.Timeout()/3 {
			text := fmt.Sprintf("%v: all holds end in %v", client.State(), left)
			http.Error(w, text, http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintf(w, "%v to %s\n", client.State(), client.Server())
	}
}

// alive answers 200 while the process can answer at all. It does not ask the client.
func alive(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "alive") }

// end

// fragment deploying-stop
func processOrders(client *framework.Client, mu *mutex.Mutex) error {
	defer client.Close() // after the last hold is released
	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	for {
		hold, err := mu.Acquire(stop) // SIGTERM ends the wait
		if err != nil && stop.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		// SIGTERM does not end the work, but a loss does.
		err = handle(hold.Context(context.WithoutCancel(stop)), hold.Token())
		if err := errors.Join(err, hold.Release()); err != nil {
			return err
		}
	}
}

// end

// fragment deploying-stop-leader
func leadUntilStopped(client *framework.Client, election *leader.Election) error {
	defer client.Close() // after the end of the term
	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	err := election.Run(stop, func(ctx context.Context, t *leader.Term) error {
		for ctx.Err() == nil { // until SIGTERM or a loss
			// SIGTERM does not end the work, but a loss does.
			if err := handle(t.Context(context.WithoutCancel(ctx)), t.Token()); err != nil {
				return err
			}
		}
		return context.Cause(ctx)
	})
	if stop.Err() != nil {
		return nil
	}
	return err
}

// end

// fragment deploying-secure
func secure(servers, password string, authorities *x509.CertPool) (*framework.Client, error) {
	return framework.New(servers,
		framework.WithTLS(&tls.Config{RootCAs: authorities}),
		framework.WithAuth("digest", []byte("orders:"+password)),
		framework.WithACL(func(path string) []zk.ACL {
			return zk.AuthACL(zk.PermAll) // of what this client creates, for this user only
		}))
}

// end

// fragment deploying-identity
func lockOf(client *framework.Client) (*mutex.Mutex, error) {
	id, err := json.Marshal(recipes.Identity{Host: os.Getenv("POD"), Process: "orders", PID: os.Getpid()})
	if err != nil {
		return nil, err
	}
	return mutex.New(client, "/locks/orders", mutex.WithData(id))
}

// end

func probe(handler http.HandlerFunc) (status int, text string) {
	answer := httptest.NewRecorder()
	handler(answer, httptest.NewRequest("GET", "/", nil))
	return answer.Code, answer.Body.String()
}

func TestReadinessFollowsTheServersAndLivenessDoesNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		way := srv.Client("pod")
		client, err := framework.New(srv.MemAddr(), framework.WithDialer(way.DialContext))
		require.NoError(t, err)
		defer client.Close()
		require.NoError(t, client.WaitConnected(t.Context()))
		status := func() int { code, _ := probe(ready(client)); return code }
		require.Equal(t, 200, status())
		time.Sleep(time.Hour)
		_, text := probe(ready(client))
		require.Equal(t, "connected to "+srv.MemAddr()+"\n", text)

		way.Drop() // a server that restarts
		time.Sleep(5 * time.Second)
		require.Equal(t, 200, status())

		way.Cut()
		time.Sleep(12 * time.Second) // the timeout is 30 s, so the holds end after 15 to 20 s
		session, err := client.Session(t.Context())
		require.NoError(t, err)
		require.NoError(t, session.Err(), "not ready before the holds end")
		require.Equal(t, 503, status())
		time.Sleep(time.Minute)
		require.Equal(t, 503, status())
		code, _ := probe(alive)
		require.Equal(t, 200, code)
		way.Heal()
		time.Sleep(time.Minute)
		require.Equal(t, 200, status(), "in a new session")
		require.NoError(t, client.Close())
		require.Equal(t, 503, status())
	})
}

// handle is the work of processOrders and leadUntilStopped in the tests.
var handle func(ctx context.Context, token int64) error

// stopDuringWork sets handle to work that gets SIGTERM, and fails if the signal ends it.
func stopDuringWork(t *testing.T) {
	t.Helper()
	outer, stop := signal.NotifyContext(t.Context(), syscall.SIGTERM) // the process survives the signal
	t.Cleanup(stop)
	handle = func(ctx context.Context, token int64) error {
		process, err := os.FindProcess(os.Getpid())
		if err != nil {
			return err
		}
		if err := process.Signal(syscall.SIGTERM); err != nil {
			return err
		}
		<-outer.Done()
		if token == 0 {
			return errors.New("no token")
		}
		return ctx.Err() // the work was not ended
	}
}

func TestSIGTERMEndsWaitsAndNotWork(t *testing.T) {
	srv := zktest.Start(t)
	client, other := connect(srv), connect(srv)
	defer other.Close()
	mu, err := mutex.New(client, "/lock")
	require.NoError(t, err)
	stopDuringWork(t)
	require.NoError(t, processOrders(client, mu))
	require.Equal(t, framework.Closed, client.State())
	lock, err := mutex.New(other, "/lock")
	require.NoError(t, err)
	hold, err := lock.TryAcquire(t.Context())
	require.NoError(t, err, "the lock is free at once")
	require.NoError(t, hold.Release())
}

func TestSIGTERMEndsATermAfterItsWork(t *testing.T) {
	srv := zktest.Start(t)
	client, other := connect(srv), connect(srv)
	defer other.Close()
	election, err := leader.New(client, "/leader", leader.WithLockDelay(time.Hour))
	require.NoError(t, err)
	stopDuringWork(t)
	require.NoError(t, leadUntilStopped(client, election))
	require.Equal(t, framework.Closed, client.State())
	next, err := leader.NewLatch(other, "/leader", leader.WithLockDelay(time.Hour))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, next.Start(ctx))
	_, err = next.Await(ctx)
	require.NoError(t, err, "the next candidate need not wait: the term has ended in order")
	require.NoError(t, next.Close())
}

func TestSecuredClientConnects(t *testing.T) {
	srv := zktest.Start(t)
	certificates := httptest.NewTLSServer(nil) // only for its certificate
	defer certificates.Close()
	authorities := x509.NewCertPool()
	authorities.AddCert(certificates.Certificate())
	addr := secureAddress(t, certificates.TLS.Certificates, srv.Addr())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	client, err := secure(addr, "secret", authorities)
	require.NoError(t, err)
	defer client.Close()
	_, err = client.Create(ctx, "/orders", nil)
	require.NoError(t, err)
	acl, _, err := client.GetACL(ctx, "/orders")
	require.NoError(t, err)
	require.Equal(t, zk.DigestACL(zk.PermAll, "orders", "secret"), acl)

	// A wrong password is another user, and no refused credential.
	other, err := secure(addr, "wrong", authorities)
	require.NoError(t, err)
	defer other.Close()
	_, _, err = other.Get(ctx, "/orders")
	require.ErrorIs(t, err, zk.ErrNoAuth)
	require.Equal(t, framework.Connected, other.State())
}

// secureAddress listens for TLS connections and passes them on to a server.
func secureAddress(t *testing.T, certificates []tls.Certificate, server string) string {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: certificates})
	require.NoError(t, err)
	var running sync.WaitGroup
	t.Cleanup(func() { listener.Close(); running.Wait() })
	running.Go(func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", server)
			if err != nil {
				from.Close()
				return
			}
			for _, pair := range [][2]net.Conn{{from, to}, {to, from}} {
				running.Go(func() {
					_, _ = io.Copy(pair[0], pair[1])
					pair[0].Close()
					pair[1].Close()
				})
			}
		}
	})
	return listener.Addr().String()
}

func TestParticipantsNameThePod(t *testing.T) {
	srv := zktest.Start(t)
	client := connect(srv)
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	t.Setenv("POD", "orders-5b8f-x2x")
	mu, err := lockOf(client)
	require.NoError(t, err)
	hold, err := mu.Acquire(ctx)
	require.NoError(t, err)
	all, err := mu.Participants(ctx)
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, fmt.Sprintf("orders[%d] on orders-5b8f-x2x", os.Getpid()), all[0].Identity.String())
	require.NoError(t, hold.Release())
}
