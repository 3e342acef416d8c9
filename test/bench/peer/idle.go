package peer

import (
	"context"
	"time"

	"github.com/docent-zk/docent/test/bench/hist"
)

// idle is many sessions that do nothing. The server counts their requests.
type idle struct{ clients clients }

// connecting is the number of sessions that are opened or closed at a time.
const connecting = 32

func newIdle(ctx context.Context, s system, job Job) (running, error) {
	all := make(clients, job.Clients)
	err := times(connecting, job.Clients, func(i int) (err error) {
		all[i], err = s.connect(ctx, job.Servers)
		return err
	})
	m := &idle{all}
	if err != nil {
		m.close()
		return nil, err
	}
	return m, nil
}

func (m *idle) close() {
	_ = times(connecting, len(m.clients), func(i int) error {
		if m.clients[i] != nil {
			m.clients[i].close()
		}
		return nil
	})
}

func (m *idle) run(ctx context.Context, long time.Duration) (Result, error) {
	began := time.Now()
	select {
	case <-time.After(long):
	case <-ctx.Done():
	}
	return Result{Ops: int64(len(m.clients)), Took: time.Since(began), Latencies: &hist.Histogram{}}, ctx.Err()
}
