package acceptance_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

// A password is changed while a client is connected. At its next connection the state is AuthFailed
// within 2 s, and operations fail with ErrAuthFailed. The client tries again at most once a second
// until the credential is accepted.
func TestP22_RotatedPasswordIsAStateAndNotAStorm(t *testing.T) {
	onlyInProcess(t, "the real server's digest scheme accepts every password, and only permissions differ")
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		user := srv.Client("user")
		c := testzk.Client(t, srv.MemAddr(), framework.WithDialer(user.DialContext),
			framework.WithAuth("digest", []byte("user:old")))
		ctx := t.Context()
		require.NoError(t, c.WaitConnected(ctx))
		states := make(chan framework.StateChange, 100)
		c.Listen(func(change framework.StateChange) { states <- change })
		mu, err := mutex.New(c, "/lock")
		require.NoError(t, err)
		hold, err := mu.Acquire(ctx)
		require.NoError(t, err)

		refusal := srv.On(fault.Match{Op: fault.OpAuth, Times: 1000}, fault.Fail(zktest.AuthFailed))
		user.Reset()
		rotated := time.Now()
		var seen []string
		for change := range states {
			seen = append(seen, change.State.String())
			if change.State == framework.AuthFailed {
				require.ErrorIs(t, change.Cause, framework.ErrAuthFailed)
				require.LessOrEqual(t, change.At.Sub(rotated), 2*time.Second)
				break
			}
		}
		require.Equal(t, "suspended lost authentication failed", strings.Join(seen, " "))
		require.ErrorIs(t, hold.Err(), framework.ErrSessionLost)
		require.ErrorIs(t, hold.Err(), framework.ErrAuthFailed, "the hold reports the reason")

		failing := time.Now()
		_, _, err = c.Get(ctx, "/")
		require.ErrorIs(t, err, framework.ErrAuthFailed)
		_, err = mu.Acquire(ctx)
		require.ErrorIs(t, err, framework.ErrAuthFailed)
		require.ErrorIs(t, c.WaitConnected(ctx), framework.ErrAuthFailed)
		require.Zero(t, time.Since(failing), "operations fail at once")

		const minute = time.Minute
		before := refusal.Hits()
		time.Sleep(minute)
		require.LessOrEqual(t, refusal.Hits()-before, int(minute/time.Second)+1, "attempts in a minute")
		require.Greater(t, refusal.Hits()-before, 5, "the client keeps trying")
		require.Equal(t, framework.AuthFailed, c.State())

		refusal.Remove()
		time.Sleep(2 * time.Second)
		require.Equal(t, framework.Reconnected, c.State())
		_, err = mu.Acquire(ctx)
		require.NoError(t, err)
	})
}

// A credential that is refused from the beginning ends WaitConnected and every operation with
// ErrAuthFailed. The state is AuthFailed.
func TestP22_WrongCredentialFromTheBeginningIsReportedAtOnce(t *testing.T) {
	c := testzk.Client(t, testzk.Connect(), framework.WithAuth("nosuch", []byte("x")))
	require.ErrorIs(t, c.WaitConnected(testzk.Context(t)), framework.ErrAuthFailed)
	_, _, err := c.Get(testzk.Context(t), "/")
	require.ErrorIs(t, err, framework.ErrAuthFailed)
	require.Equal(t, framework.NotApplied, framework.OutcomeOf(err))
	require.Equal(t, framework.AuthFailed, c.State())
}

// A server's certificate is for the name zk-0.zk. It is verified by the name in the connection
// string, although the name resolves to an address that the certificate does not have. Another name
// is refused.
func TestP22_CertificateIsVerifiedByTheNameNotTheAddress(t *testing.T) {
	roots, address := p22TLSFront(t, "zk-0.zk")
	resolve := framework.WithDialer(func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	})
	settings := framework.WithTLS(&tls.Config{RootCAs: roots})
	c := testzk.Connected(t, "zk-0.zk:2281", resolve, settings, long())
	_, _, err := c.Get(testzk.Context(t), "/")
	require.NoError(t, err)

	stranger := testzk.Client(t, "zk-1.zk:2281", resolve, settings)
	testzk.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(testzk.Context(t), 100*time.Millisecond)
		defer cancel()
		err = stranger.WaitConnected(ctx)
		return err == nil || strings.Contains(err.Error(), "certificate is valid for zk-0.zk")
	}, "the error does not have the reason")
	require.ErrorContains(t, err, "zk-1.zk:2281", "the error does not name the server")
}

// p22TLSFront serves TLS in front of one of the servers, with a certificate for name only.
func p22TLSFront(t *testing.T, name string) (roots *x509.CertPool, address string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	roots = x509.NewCertPool()
	roots.AddCert(cert)
	certificate := tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate}})
	require.NoError(t, err)
	server, _, _ := strings.Cut(testzk.Connect(), ",")
	done := make(chan struct{})
	go func() { defer close(done); p22Forward(listener, server) }()
	t.Cleanup(func() { listener.Close(); <-done })
	return roots, listener.Addr().String()
}

// p22Forward copies between accepted connections and the server until the listener and the
// connections are closed.
func p22Forward(listener net.Listener, server string) {
	var ends []chan struct{}
	for {
		client, err := listener.Accept()
		if err != nil {
			break
		}
		end := make(chan struct{})
		ends = append(ends, end)
		go func() { defer close(end); p22Copy(client, server) }()
	}
	for _, end := range ends {
		<-end
	}
}

func p22Copy(client net.Conn, server string) {
	defer client.Close()
	upstream, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	back := make(chan struct{})
	go func() { defer close(back); _, _ = io.Copy(client, upstream); client.Close() }()
	_, _ = io.Copy(upstream, client)
	upstream.Close()
	<-back
}
