package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
)

func writeFile(t testing.TB, name, content string, mode os.FileMode) {
	t.Helper()
	require.NoError(t, os.WriteFile(name, []byte(content), mode))
}

// lockFree takes a lock that is free, with flags and environment variables.
func lockFree(t *testing.T, flags, environment []string) (code int, errs string) {
	t.Helper()
	cmd := docent(append(flags, "lock", "-w", "1m", testzk.Path(t), "--", "true")...)
	cmd.Env = append(cmd.Env, environment...)
	code, _, errs = finishCommand(t, cmd)
	return code, errs
}

func TestServersComeFromFlagsThenEnvironmentThenConfiguration(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(home, "docent"), 0o700))
	standard := filepath.Join(home, "docent", "config.json")
	good, bad := testzk.Connect(), "not a server/"
	config := func(connect string) string { return fmt.Sprintf(`{"connect": %q, "session-timeout": "20s"}`, connect) }
	writeFile(t, standard, config(good), 0o600)
	other := filepath.Join(home, "other.json")
	writeFile(t, other, config(bad), 0o600)
	at := "XDG_CONFIG_HOME=" + home
	for name, test := range map[string]struct {
		flags, environment []string
		want               int
	}{
		"configuration":                       {nil, []string{at}, 0},
		"another configuration":               {[]string{"--config", other}, []string{at}, exitUsage},
		"another, by the environment":         {nil, []string{at, "DOCENT_CONFIG=" + other}, exitUsage},
		"environment before configuration":    {nil, []string{at, "DOCENT_CONNECT=" + bad}, exitUsage},
		"environment":                         {nil, []string{"DOCENT_CONNECT=" + good}, 0},
		"flag before environment":             {[]string{"--connect", good}, []string{at, "DOCENT_CONNECT=" + bad}, 0},
		"flag before configuration":           {[]string{"--connect", good, "--config", other}, nil, 0},
		"wrong session timeout is not hidden": {[]string{"--session-timeout", "1ms"}, []string{at}, exitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, errs := lockFree(t, test.flags, test.environment)
			assert.Equal(t, test.want, code, errs)
		})
	}
}

func TestWrongConfigurationsAreRefused(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		`[]`:                     "want a JSON object",
		`{"connect": 3}`:         `"connect": want a text, or true or false`,
		`{"conect": "zk"}`:       `"conect" is not one of connect, session-timeout, tls, `,
		`{"tls": "perhaps"}`:     `"tls": `,
		`{"session-timeout":""}`: `"session-timeout": `,
	} {
		name := filepath.Join(t.TempDir(), "config.json")
		writeFile(t, name, content, 0o600)
		code, errs := lockFree(t, []string{"--config", name}, nil)
		assert.Equal(t, exitUsage, code, content)
		assert.Contains(t, errs, "docent: configuration "+name+": "+want)
	}
	code, errs := lockFree(t, []string{"--config", "/nonexistent"}, nil)
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, errs, "docent: configuration: open /nonexistent: ")
}

func TestADigestIsReadFromAFile(t *testing.T) {
	t.Parallel()
	parent := testzk.Path(t)
	observer := testzk.Observer(t)
	_, err := observer.Create(filepath.Dir(parent), nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	_, err = observer.Create(parent, nil, 0, zk.DigestACL(zk.PermAll, "user", "secret"))
	require.NoError(t, err)
	name := filepath.Join(t.TempDir(), "digest")
	writeFile(t, name, "user:secret\n", 0o600)
	code, _, errs := finish(t, connected("--digest-file", name, "lock", parent, "--", "true")...)
	assert.Zero(t, code, errs)
	code, _, errs = finish(t, connected("lock", parent, "--", "true")...)
	assert.Equal(t, exitRefused, code, errs)
	writeFile(t, name, "secret\n", 0o600)
	code, _, errs = finish(t, connected("--digest-file", name, "lock", parent, "--", "true")...)
	assert.Equal(t, exitUsage, code)
	assert.NotContains(t, errs, "secret")
}

// certificate writes a certificate for 127.0.0.1 that is its own authority, and its key.
func certificate(t *testing.T, name string) (certificate, key string) {
	t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, secret.Public(), secret)
	require.NoError(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(secret)
	require.NoError(t, err)
	certificate, key = filepath.Join(t.TempDir(), name+".pem"), filepath.Join(t.TempDir(), name+".key")
	writeFile(t, certificate, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), 0o600)
	writeFile(t, key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})), 0o600)
	return certificate, key
}

// secured passes connections with TLS on to the servers of the tests. It wants the certificate of the
// client.
func secured(t *testing.T, certificate, key, client string) (address string) {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(certificate, key)
	require.NoError(t, err)
	trusted, err := os.ReadFile(client)
	require.NoError(t, err)
	clients := x509.NewCertPool()
	require.True(t, clients.AppendCertsFromPEM(trusted))
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert,
	})
	require.NoError(t, err)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer func() { _ = conn.Close() }()
				server, err := net.Dial("tcp", strings.Split(testzk.Connect(), ",")[0])
				if err != nil {
					return
				}
				defer func() { _ = server.Close() }()
				running.Go(func() { _, _ = io.Copy(conn, server) })
				_, _ = io.Copy(server, conn)
			})
		}
	})
	t.Cleanup(func() { _ = listener.Close(); running.Wait() })
	return listener.Addr().String()
}

func TestConnectionsWithTLS(t *testing.T) {
	t.Parallel()
	certA, keyA := certificate(t, "server")
	certB, keyB := certificate(t, "client")
	address := secured(t, certA, keyA, certB)
	flags := func(more ...string) []string { return append([]string{"--connect", address}, more...) }
	keys := func(certificate, key string) []string {
		return flags("--tls", "--tls-ca", certA, "--tls-cert", certificate, "--tls-key", key)
	}
	for name, test := range map[string]struct {
		flags []string
		want  int
	}{
		"all":                      {keys(certB, keyB), 0},
		"no key":                   {flags("--tls", "--tls-ca", certA, "--tls-cert", certB), exitUsage},
		"no certificate":           {flags("--tls", "--tls-ca", certA, "--tls-key", keyB), exitUsage},
		"the other key":            {keys(certB, keyA), exitUsage},
		"an authority without TLS": {flags("--tls-ca", certA), exitUsage},
		"no authority in the file": {flags("--tls", "--tls-ca", keyA), exitUsage},
		"no such file":             {flags("--tls", "--tls-ca", "/nonexistent"), exitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, errs := lockFree(t, test.flags, nil)
			assert.Equal(t, test.want, code, errs)
		})
	}
	t.Run("another authority", func(t *testing.T) {
		t.Parallel()
		args := flags("--tls", "--tls-ca", certB, "--tls-cert", certB, "--tls-key", keyB, "lock", "-w", "5s")
		errs := ""
		for range 5 { // the last attempt to connect may not get an answer in time
			var code int
			code, _, errs = finish(t, append(args, testzk.Path(t), "--", "true")...)
			assert.Equal(t, exitNoServers, code, errs)
			if strings.Contains(errs, "certificate") {
				break
			}
		}
		assert.Contains(t, errs, "certificate signed by unknown authority")
	})
}
