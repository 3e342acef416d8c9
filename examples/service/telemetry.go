package main

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	promdocent "github.com/docent-zk/docent/contrib/prometheus"
	"github.com/docent-zk/docent/framework/metrics"
)

// telemetry has the metrics and traces of one service.
type telemetry struct {
	metrics  metrics.Metrics // for the client
	handler  http.Handler    // for Prometheus
	tracer   trace.Tracer
	shutdown func(context.Context) error // exports the last spans
}

func newTelemetry(logger *slog.Logger) (*telemetry, error) {
	registry := prometheus.NewRegistry()
	m, err := promdocent.New(registry)
	if err != nil {
		return nil, err
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(logExporter{logger}))
	return &telemetry{
		metrics:  m,
		handler:  promhttp.HandlerFor(registry, promhttp.HandlerOpts{}),
		tracer:   provider.Tracer("github.com/docent-zk/docent/examples/service"),
		shutdown: provider.Shutdown,
	}, nil
}

// logExporter writes spans to the log. A real service has an exporter that sends them to a collector.
type logExporter struct{ logger *slog.Logger }

// ExportSpans writes a line for each span.
func (e logExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	for _, s := range spans {
		args := []any{"name", s.Name(), "duration", s.EndTime().Sub(s.StartTime()).String()}
		for _, a := range s.Attributes() {
			args = append(args, string(a.Key), a.Value.AsInterface())
		}
		e.logger.InfoContext(ctx, "span", args...)
	}
	return nil
}

// Shutdown has nothing to end.
func (logExporter) Shutdown(context.Context) error { return nil }
