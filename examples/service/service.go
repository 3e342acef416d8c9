package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"golang.org/x/sync/errgroup"

	oteldocent "github.com/docent-zk/docent/contrib/otel"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/mutex"
)

// lockPath is the path of the lock, which all processes of the service share.
const lockPath = "/docent-examples/service/jobs"

// service is one process. It is used once.
type service struct {
	logger    *slog.Logger
	telemetry *telemetry
	client    *framework.Client
	lock      *mutex.Mutex
	worker    *worker
	http      *http.Server
	stopping  atomic.Bool // it takes no more jobs
}

// newService makes no request to ZooKeeper. A service may start while no server can be reached.
func newService(cfg config, logger *slog.Logger) (*service, error) {
	t, err := newTelemetry(logger)
	if err != nil {
		return nil, err
	}
	s := &service{logger: logger, telemetry: t}
	if err := s.equip(cfg); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// equip makes the client and what uses it.
func (s *service) equip(cfg config) (err error) {
	s.client, err = framework.New(cfg.connect, framework.WithSessionTimeout(cfg.session),
		framework.WithSlog(s.logger), framework.WithMetrics(s.telemetry.metrics))
	if err != nil {
		return err
	}
	if s.lock, err = mutex.New(s.client, lockPath, mutex.WithIdentity()); err != nil {
		return err
	}
	name := attribute.String("service.name", "docent-example")
	traced, err := oteldocent.NewLocker(s.telemetry.tracer, "mutex", s.lock, name)
	if err != nil {
		return err
	}
	s.worker = &worker{s.logger, s.client, traced, cfg.job, cfg.grace}
	s.http = &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second}
	return nil
}

// handler serves the health checks and the metrics.
func (s *service) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", alive)
	mux.Handle("GET /readyz", ready(s.client, &s.stopping))
	mux.Handle("GET /metrics", s.telemetry.handler)
	return mux
}

const (
	httpGrace   = 5 * time.Second // how long requests that have begun may take when the service stops
	exportGrace = 5 * time.Second // how long the export of the last spans may take
)

// run serves and works until ctx ends, as it does at SIGTERM, or a part fails. It stops the parts in this
// order: the worker, which finishes its job and releases the lock; the health checks and metrics, which
// answer until then; the client; the traces. It returns nil if the service was stopped.
func (s *service) run(ctx context.Context, listener net.Listener) error {
	s.logger.Info("the service listens", "address", listener.Addr().String())
	parts, ctx := errgroup.WithContext(ctx)
	worked := make(chan struct{})
	parts.Go(func() error {
		defer close(worked)
		return s.worker.run(ctx)
	})
	parts.Go(func() error {
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	parts.Go(func() error {
		<-ctx.Done()
		s.stopping.Store(true)
		<-worked
		return shutdown(httpGrace, s.http.Shutdown)
	})
	return errors.Join(parts.Wait(), s.close())
}

// close closes the client, which ends all holds, and exports the last spans.
func (s *service) close() (err error) {
	if s.client != nil {
		err = s.client.Close()
	}
	return errors.Join(err, shutdown(exportGrace, s.telemetry.shutdown))
}

// shutdown calls stop with a context of its own: that of the service has ended.
func shutdown(limit time.Duration, stop func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return stop(ctx)
}
