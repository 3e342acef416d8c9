package conn

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestServersWhoseNamesDoNotResolveAreSkipped(t *testing.T) {
	s := serve(t, func(p *peer) { p.answerAll(7, long) })
	c := connect(t, Config{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		if strings.HasPrefix(address, "nowhere") {
			return nil, &net.DNSError{Err: "no such host", Name: address, IsNotFound: true}
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}}, "nowhere-1.test:2181", "nowhere-2.test:2181", s.addr())
	c.awaitSession(t, 7)
}

func TestTroubleNamesEachServer(t *testing.T) {
	c := connect(t, Config{Dial: func(_ context.Context, _, address string) (net.Conn, error) {
		return nil, &net.DNSError{Err: "no such host", Name: "the name in " + address, IsNotFound: true}
	}}, "a.test:2181", "b.test:2181")
	eventually(t, func() bool {
		return c.Failures() != nil && strings.Count(c.Failures().Error(), ";") == 1
	}, "want the failures of two servers, got %v", c.Failures())
	require.EqualError(t, c.Failures(), "a.test:2181: lookup the name in a.test:2181: no such host; "+
		"b.test:2181: lookup the name in b.test:2181: no such host")
}

// The address of a name may change.
func TestNamesAreResolvedAtEachAttempt(t *testing.T) {
	one := serve(t, func(p *peer) { p.answerAll(7, long) })
	two := serve(t, func(p *peer) { p.answerAll(7, long) })
	var to atomic.Pointer[server]
	to.Store(one)
	c := connect(t, Config{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		if address != "zk.test:2181" {
			return nil, &net.AddrError{Err: "not the name", Addr: address}
		}
		return (&net.Dialer{}).DialContext(ctx, network, to.Load().addr())
	}}, "zk.test:2181")
	c.awaitSession(t, 7)
	to.Store(two)
	one.closeAll()
	eventually(t, func() bool { return two.accepted() == 1 }, "the new address is not used: %v", c.Failures())
	c.awaitSession(t, 7)
}

// certificate returns a self-signed certificate for one name.
func certificate(t *testing.T, name string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: name},
		DNSNames:     []string{name},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		IsCA:         true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func TestTLSVerifiesTheNameOfTheServer(t *testing.T) {
	cert, pool := certificate(t, "zk-0.test")
	for name, row := range map[string]struct {
		server, serverName string
		want               string
	}{
		"the name":              {server: "zk-0.test:2281"},
		"another name":          {server: "zk-1.test:2281", want: "certificate is valid for zk-0.test, not zk-1.test"},
		"the name that was set": {server: "zk-1.test:2281", serverName: "zk-0.test"},
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}})
			require.NoError(t, err)
			s := serveOn(t, listener, func(p *peer) { p.answerAll(7, long) })
			settings := &tls.Config{RootCAs: pool, ServerName: row.serverName}
			c := connect(t, Config{TLS: settings, Dial: redirect(s.addr())}, row.server)
			if row.want == "" {
				c.awaitSession(t, 7)
				return
			}
			eventually(t, func() bool { return c.Failures() != nil }, "no failure")
			require.ErrorContains(t, c.Failures(), row.want)
		})
	}
}

func TestTLSHandshakeIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, dial := serveInMemory(t, func(p *peer) { _, _ = p.Conn.Read(make([]byte, 1<<16)); stall(p) })
		settings := &tls.Config{ServerName: "x"}
		c := connect(t, Config{TLS: settings, ConnectTimeout: 50 * time.Millisecond, Dial: dial}, "a:1")
		eventually(t, func() bool { return s.accepted() > 2 }, "still waiting for a silent server; %v", c.Failures())
		require.ErrorContains(t, c.Failures(), "deadline exceeded")
	})
}

// A name stands for several servers. One of them accepts connections and never sends anything.
func TestSilentServerOfANameDoesNotHideTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent, toSilent := serveInMemory(t, stall)
		_, toOther := serveInMemory(t, func(p *peer) { p.answerAll(7, long) })
		dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
			if addr == "127.0.0.1:2181" {
				return toSilent(ctx, network, addr)
			}
			return toOther(ctx, network, addr)
		}
		resolve := func(_ context.Context, host string) ([]string, error) {
			if host != "zookeeper.example" {
				return nil, errors.New("no such host")
			}
			return []string{"127.0.0.1", "127.0.0.2"}, nil
		}
		c := connect(t, Config{Resolve: resolve, ConnectTimeout: time.Second, Dial: dial}, "zookeeper.example:2181")
		c.awaitSession(t, 7)
		require.Positive(t, silent.accepted())
	})
}

func TestTroubleHasNamesThatDoNotResolve(t *testing.T) {
	t.Parallel()
	for _, resolve := range []func(context.Context, string) ([]string, error){
		func(context.Context, string) ([]string, error) {
			return nil, errors.New("lookup a.example: no such host")
		},
		func(context.Context, string) ([]string, error) { return nil, nil },
	} {
		c := connect(t, Config{Resolve: resolve}, "a.example:1")
		eventually(t, func() bool { return c.Failures() != nil }, "no attempt")
		require.ErrorContains(t, c.Failures(), "lookup a.example: no ")
	}
}
