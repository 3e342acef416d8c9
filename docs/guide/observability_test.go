package guide

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/framework/metrics"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
)

// fragment observability-options
func observed(servers string, logger *zap.Logger, m metrics.Metrics) (*framework.Client, *mutex.Mutex, error) {
	client, err := framework.New(servers,
		framework.WithLogger(logger),           // or WithSlog, with a *slog.Logger
		framework.WithMetrics(m),               // an adapter, such as those of contrib/prometheus
		framework.WithWaitWarning(time.Minute)) // the default
	if err != nil {
		return nil, nil, err
	}
	mu, err := mutex.New(client, "/locks/orders", mutex.WithIdentity())
	if err != nil {
		return nil, nil, errors.Join(err, client.Close())
	}
	return client, mu, nil
}

// end

type nothing struct{}

func (nothing) Add(metrics.Instrument, int64, metrics.Labels)            {}
func (nothing) Record(metrics.Instrument, time.Duration, metrics.Labels) {}

func TestObservedLockHasItsIdentity(t *testing.T) {
	srv := zktest.Start(t)
	client, mu, err := observed(srv.Addr(), zap.NewNop(), nothing{})
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	hold, err := mu.Acquire(t.Context())
	require.NoError(t, err)
	queue, err := mu.Participants(t.Context())
	require.NoError(t, err)
	require.Len(t, queue, 1)
	require.NotNil(t, queue[0].Identity)
	require.NoError(t, hold.Release())
}
