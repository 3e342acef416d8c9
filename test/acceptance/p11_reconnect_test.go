package acceptance_test

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// p11Spoilers are faults of the request that sets a client's watches again after a reconnect. Each
// returns a function that counts them.
var p11Spoilers = map[string]func(srv *zktest.Server) (dial p11Dial, spoiled func() int){
	"answered with an error": func(srv *zktest.Server) (p11Dial, func() int) {
		match := fault.Match{Client: "waiter", Op: fault.OpSetWatches, Times: fault.Always}
		return srv.Client("waiter").DialContext, srv.On(match, fault.Fail(zktest.MarshallingError)).Hits
	},
	"swallowed": func(srv *zktest.Server) (p11Dial, func() int) {
		var swallowed atomic.Int64
		dial := func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := srv.Client("waiter").DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &p11Filter{conn, &swallowed}, nil
		}
		return dial, func() int { return int(swallowed.Load()) }
	},
}

type p11Dial = func(ctx context.Context, network, address string) (net.Conn, error)

// p11Filter forwards all requests but those that set watches again. A write is one or more whole
// requests, each with its length, number and type.
type p11Filter struct {
	net.Conn
	swallowed *atomic.Int64
}

func (s *p11Filter) Write(b []byte) (int, error) {
	var passed []byte
	for rest := b; len(rest) >= 12; {
		frame := rest[:4+binary.BigEndian.Uint32(rest)]
		rest = rest[len(frame):]
		if fault.Op(int32(binary.BigEndian.Uint32(frame[8:]))) == fault.OpSetWatches {
			s.swallowed.Add(1)
			continue
		}
		passed = append(passed, frame...)
	}
	if len(passed) == 0 {
		return len(b), nil
	}
	if _, err := s.Conn.Write(passed); err != nil {
		return 0, err
	}
	return len(b), nil
}

// The connection of a waiter breaks, and the request that sets its watches again is answered with
// an error or dropped. The waiter has the lock within a second of the holder's release, or of the
// reconnect if the release came before.
func TestP11_WatchesThatAreNotSetAgainDelayNoWaiter(t *testing.T) {
	onlyInProcess(t, virtual)
	for how, spoil := range p11Spoilers {
		for when, after := range map[string]time.Duration{
			"while away":              -time.Second,
			"at the reconnect":        0,
			"a moment after it":       20 * time.Millisecond,
			"a second after it":       time.Second,
			"some time after it":      20 * time.Second,
			"after another reconnect": time.Minute,
		} {
			t.Run(how+", released "+when, func(t *testing.T) {
				t.Parallel()
				sim.Run(t, 5, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) { p11Break(t, srv, spoil, after) })
			})
		}
	}
}

// p11Break breaks the waiter's connection for two seconds. The holder releases the lock the given
// time after the reconnect.
func p11Break(t *testing.T, srv *zktest.Server, spoil func(*zktest.Server) (p11Dial, func() int), after time.Duration) {
	holder := bubbleAcquire(t, srv, "holder").Won(t)
	dial, spoiled := spoil(srv)
	client := bubbleClient(t, srv, "waiter", framework.WithDialer(dial))
	waiter := testlock.StartUnder(t, t.Context(), bubbleMutex(t, client, "/lock").Acquire)
	time.Sleep(time.Second)
	require.True(t, bubbleWaits(waiter))

	srv.Client("waiter").Refuse(true)
	srv.Client("waiter").Drop()
	time.Sleep(time.Second)
	require.Equal(t, framework.Suspended, client.State())
	if after < 0 {
		require.NoError(t, holder.Release())
	}
	time.Sleep(time.Second)
	srv.Client("waiter").Refuse(false)
	require.NoError(t, client.WaitConnected(t.Context()))
	if after == time.Minute {
		srv.Client("waiter").Drop()
	}
	if after >= 0 {
		time.Sleep(after)
		require.NoError(t, client.WaitConnected(t.Context()))
		require.True(t, bubbleWaits(waiter))
		require.NoError(t, holder.Release())
	}
	since := time.Now()
	hold := waiter.Won(t)
	require.LessOrEqual(t, time.Since(since), time.Second)
	require.Positive(t, spoiled(), "no request to set watches arrived")
	require.NoError(t, hold.Release())
}
