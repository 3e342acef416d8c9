package porting

import (
	"bufio"
	"context"
	"io"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/peers"
	"github.com/docent-zk/docent/internal/realzk"
	"github.com/docent-zk/docent/zktest"
)

// Two members in Java and two in Go enter a barrier together and leave it together.
func TestDoubleBarrierWithCurator(t *testing.T) {
	realzk.Need(t)
	const barrier = "/barriers/mixed"
	srv := zktest.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	java := peers.Java(t, javaFiles)
	var members []*javaMember
	for range 2 {
		members = append(members, startJavaMember(t, ctx, append(java, "BarrierMember", srv.Addr(), barrier, "4")...))
	}
	present := func(n int) {
		t.Helper()
		require.Eventually(t, func() bool {
			names, err := srv.Children(barrier)
			return err == nil && len(names) == n
		}, time.Minute, 10*time.Millisecond, "%d nodes", n)
	}
	present(2)

	client := connect(srv)
	defer client.Close()
	entered := make(chan error, 2)
	go func() { entered <- enter(ctx, client, barrier, "go-1", 4) }()
	present(3)
	require.Empty(t, entered, "one member is missing")
	go func() { entered <- enter(ctx, client, barrier, "go-2", 4) }()
	require.NoError(t, <-entered)
	require.NoError(t, <-entered)
	for _, m := range members {
		require.Equal(t, "entered\n", m.line(t))
	}
	present(5) // with the node ready

	left := make(chan error, 2)
	go func() { left <- leave(ctx, client, barrier, "go-1") }()
	present(4)
	members[0].leave(t)
	require.Empty(t, left, "other members are inside")
	members[1].leave(t)
	go func() { left <- leave(ctx, client, barrier, "go-2") }()
	require.NoError(t, <-left)
	require.NoError(t, <-left)
	for _, m := range members {
		require.Equal(t, "left\n", m.line(t))
		require.NoError(t, m.command.Wait())
	}
	require.False(t, srv.Exists(barrier+"/ready"))
}

// javaMember is a member of a barrier in a Java process.
type javaMember struct {
	command *exec.Cmd
	in      io.Writer
	out     *bufio.Reader
}

func startJavaMember(t *testing.T, ctx context.Context, command ...string) *javaMember {
	m := &javaMember{command: exec.CommandContext(ctx, command[0], command[1:]...)}
	in, err := m.command.StdinPipe()
	require.NoError(t, err)
	out, err := m.command.StdoutPipe()
	require.NoError(t, err)
	m.in, m.out = in, bufio.NewReader(out)
	require.NoError(t, m.command.Start())
	t.Cleanup(func() { _ = m.command.Process.Kill() })
	return m
}

func (m *javaMember) line(t *testing.T) string {
	t.Helper()
	line, err := m.out.ReadString('\n')
	require.NoError(t, err)
	return line
}

func (m *javaMember) leave(t *testing.T) {
	t.Helper()
	_, err := io.WriteString(m.in, "\n")
	require.NoError(t, err)
}
