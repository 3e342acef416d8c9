package framework_test

import (
	"log/slog"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest"
)

func TestBadOptionsAreReported(t *testing.T) {
	for want, opt := range map[string]framework.Option{
		"option 0 is nil":                                        nil,
		"WithSessionTimeout: 0s is not between":                  framework.WithSessionTimeout(0),
		"WithSessionTimeout: -1s is not between":                 framework.WithSessionTimeout(-time.Second),
		"WithSessionTimeout: 99ms is not between":                framework.WithSessionTimeout(99 * time.Millisecond),
		"WithSessionTimeout: 24h0m1s is not":                     framework.WithSessionTimeout(86401 * time.Second),
		"WithConnectTimeout: 0s is not positive":                 framework.WithConnectTimeout(0),
		"WithConnectTimeout: -5ns is not positive":               framework.WithConnectTimeout(-5),
		"WithRetry: nil policy":                                  framework.WithRetry(nil),
		`WithNamespace: namespace "/a": framework: invalid path`: framework.WithNamespace("/a"),
		`namespace "a/": framework: invalid path "/a/"`:          framework.WithNamespace("a/"),
		`namespace "a//b"`:                                       framework.WithNamespace("a//b"),
		`namespace ".."`:                                         framework.WithNamespace(".."),
		"WithSlog: nil logger":                                   framework.WithSlog(nil),
		"WithLogger: nil logger":                                 framework.WithLogger(nil),
		"WithMetrics: nil metrics":                               framework.WithMetrics(nil),
		"WithWaitWarning: -1s is negative":                       framework.WithWaitWarning(-time.Second),
		"WithAuth: the scheme is empty":                          framework.WithAuth("", []byte("a:b")),
		`WithAuth: scheme "digest": the value is empty`:          framework.WithAuth("digest", nil),
		`"digest": the value is empty: want user`:                framework.WithAuth("digest", []byte{}),
		`scheme "digest": the value has no colon`:                framework.WithAuth("digest", []byte("hunter2")),
		"WithACL: nil function":                                  framework.WithACL(nil),
		"WithTLS: nil configuration":                             framework.WithTLS(nil),
		"WithResolver: nil function":                             framework.WithResolver(nil),
		"WithDialer: nil function":                               framework.WithDialer(nil),
		"WithLossPolicy: LossPolicy(2) is neither":               framework.WithLossPolicy(2),
		"WithLossPolicy: LossPolicy(-1) is neither":              framework.WithLossPolicy(-1),
		"WithLossDeadline: 0.33 is not between":                  framework.WithLossDeadline(0.33),
		"WithLossDeadline: 0.76 is not between":                  framework.WithLossDeadline(0.76),
		"WithLossDeadline: NaN is not between":                   framework.WithLossDeadline(math.NaN()),
		"WithRandom: nil function":                               framework.WithRandom(nil),
	} {
		c, err := framework.New("127.0.0.1:1", opt)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "new client: ")
		require.NotContains(t, err.Error(), "hunter2", "the error has what may be a password")
		require.Nil(t, c)
	}
}

func TestLoggersOfTwoKindsExcludeEachOther(t *testing.T) {
	zaps, slogs := framework.WithLogger(zap.NewNop()), framework.WithSlog(slog.New(slog.DiscardHandler))
	for want, opts := range map[string][]framework.Option{
		"WithLogger and WithSlog exclude each other": {zaps, slogs},
		"WithSlog and WithLogger exclude each other": {slogs, zaps},
	} {
		_, err := framework.New("127.0.0.1:1", opts...)
		require.ErrorContains(t, err, want)
	}
}

func TestCredentialsOfOtherSchemesMayBeEmpty(t *testing.T) {
	c, err := framework.New("127.0.0.1:1", framework.WithAuth("x509", nil),
		framework.WithAuth("digest", []byte("user:")))
	require.NoError(t, err)
	require.NoError(t, c.Close())
}

func TestBadConnectionStringsAreReported(t *testing.T) {
	for _, connect := range []string{"", "a:b", "zk://a", "a:1,,b:2", "a:1/x/", "::1"} {
		c, err := framework.New(connect)
		require.ErrorContains(t, err, "new client: connection string ")
		require.ErrorContains(t, err, connect)
		require.Nil(t, c)
	}
}

func TestLossDeadlineIsAPartOfTheTimeout(t *testing.T) {
	const timeout = 12 * time.Second
	for _, fraction := range []float64{1.0 / 3, 0.5, 2.0 / 3, 3.0 / 4} {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t, zktest.WithTick(time.Second))
			client := srv.Client("a")
			c := testzk.Connected(t, srv.MemAddr(), framework.WithSessionTimeout(timeout),
				framework.WithLossDeadline(fraction), framework.WithDialer(client.DialContext))
			s := session(t, c)
			client.Cut()
			start := time.Now()
			<-s.Done()
			require.InDelta(t, fraction*timeout.Seconds(), time.Since(start).Seconds(), 0.05)
		})
	}
}

func TestSessionTimeoutIsTheGrantedOne(t *testing.T) {
	for asked, granted := range map[time.Duration]time.Duration{
		100 * time.Millisecond: 400 * time.Millisecond, // two ticks
		3 * time.Second:        3 * time.Second,
		time.Hour:              time.Minute,
	} {
		c := testzk.Connected(t, testzk.Connect(), framework.WithSessionTimeout(asked))
		s := session(t, c)
		require.Equal(t, granted, s.Timeout(), "asked for %v", asked)
		left := time.Until(s.ValidUntil())
		require.LessOrEqual(t, left, granted*2/3)
		require.NoError(t, c.Close())
	}
}
