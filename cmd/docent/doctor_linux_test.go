package main

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/cmd/docent/internal/doctor"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest"
)

// diagnose runs docent doctor -o json, and returns what it has found.
func diagnose(t *testing.T, flags []string, args ...string) (code int, all []doctor.Finding, errs string) {
	t.Helper()
	line := append(append(flags, "doctor", "-o", "json", "--wait", testzk.Patience.String()), args...)
	code, out, errs := finish(t, line...)
	for _, object := range strings.Split(strings.TrimSpace(out), "\n") {
		var f doctor.Finding
		require.NoError(t, json.Unmarshal([]byte(object), &f), "%s: %s", object, errs)
		all = append(all, f)
	}
	return code, all, errs
}

func TestDoctorFindsNothingWrong(t *testing.T) {
	t.Parallel()
	chroot := testzk.Path(t)
	c := testzk.Connected(t, testzk.Connect()+chroot)
	acquire(t, newMutex(t, c, "/locks/orders", "host-3", 4711))
	flags := []string{"--connect", testzk.Connect() + chroot, "--session-timeout", "20s"}
	code, all, errs := diagnose(t, flags, "--write", "/locks-doctor", "/locks")
	assert.Zero(t, code, "%v %s", all, errs)
	assert.Empty(t, errs)
	for _, f := range all {
		assert.NotEqual(t, doctor.Skip, f.Result, f)
		assert.NotEqual(t, doctor.Fail, f.Result, f)
	}
	children, _, err := c.Children(testzk.Context(t), "/")
	require.NoError(t, err)
	assert.Equal(t, []string{"locks"}, children)
}

func TestDoctorPrintsLinesWithAdvice(t *testing.T) {
	t.Parallel()
	srv := zktest.Start(t, zktest.WithSessionTimeouts(2e9, 20e9))
	c := testzk.Connected(t, srv.Addr())
	_, err := c.Create(testzk.Context(t), "/locks/left/_c_8026b758-0c64-4418-a4a7-a40067d845c1-lock-0000000000", nil,
		framework.Parents())
	require.NoError(t, err)
	code, out, errs := finish(t, "--connect", srv.Addr(), "--session-timeout", "20s",
		"doctor", "--wait", "60s", "/locks")
	assert.Equal(t, exitUnhealthy, code)
	assert.Equal(t, "docent: checks that failed: 1\n", errs)
	lines := strings.Split(out, "\n")
	assert.Regexp(t, `^ok     server             `+srv.Addr()+`: opens a session, in .*s$`, lines[0])
	assert.Equal(t, "ok     session timeout    20s is granted; the servers grant 2s to 20s", lines[1])
	assert.Contains(t, out, `skip   clock              only a node that is created shows the servers' clock
                          -> give a path to --write
`)
	assert.Contains(t, out, `fail   abandoned locks    1 locks whose holder's node belongs to no session
                             /locks/left
                          -> see which program made the node, and delete it: nothing else will
`)
}

func TestDoctorWithoutServers(t *testing.T) {
	t.Parallel()
	code, out, errs := finish(t, "--connect", "127.0.0.1:1", "doctor", "--wait", "3s")
	assert.Equal(t, exitUnhealthy, code)
	assert.Contains(t, out, "fail   server             127.0.0.1:1: ")
	assert.Contains(t, out, "connection refused")
	assert.Contains(t, out, "fail   connection ")
	assert.Contains(t, errs, "docent: checks that failed: 2\n")
}

func TestDoctorUsesTLS(t *testing.T) {
	t.Parallel()
	certA, keyA := certificate(t, "server")
	certB, keyB := certificate(t, "client")
	address := secured(t, certA, keyA, certB)
	_, all, errs := diagnose(t, []string{
		"--connect", address, "--tls", "--tls-ca", certA, "--tls-cert", certB, "--tls-key", keyB,
	}, "/zookeeper")
	assert.Equal(t, "server", all[0].Check)
	assert.Equal(t, doctor.OK, all[0].Result, all[0])
	code, all, _ := diagnose(t, []string{"--connect", address, "--session-timeout", "4s"}, "--wait", "1s")
	assert.Equal(t, exitUnhealthy, code)
	assert.Equal(t, doctor.Fail, all[0].Result, errs)
	assert.Contains(t, all[0].Advice, "TLS")
}

func TestASignalEndsDoctor(t *testing.T) {
	t.Parallel()
	p := start(t, "--connect", "127.0.0.1:1", "doctor", "--wait", "10m")
	assert.Contains(t, p.line(), "fail   server ")
	p.signal(syscall.SIGTERM)
	assert.Equal(t, 128+15, p.wait(), &p.errs)
}
