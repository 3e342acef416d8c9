package oteldocent_test

import (
	"context"
	"fmt"
	"log"
	"path"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	oteldocent "github.com/docent-zk/docent/contrib/otel"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/framework/metrics"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
)

// The locks below /orders are one series. A real program has a reader that exports, such as that of
// Prometheus.
func Example() {
	reader := sdk.NewManualReader()
	meter := sdk.NewMeterProvider(sdk.WithReader(reader)).Meter("github.com/docent-zk/docent")
	adapter, err := oteldocent.New(meter, oteldocent.WithPaths(path.Dir))
	if err != nil {
		log.Fatal(err)
	}
	lock("/orders/7", adapter)
	lock("/orders/8", adapter)

	var data metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &data); err != nil {
		log.Fatal(err)
	}
	for _, m := range data.ScopeMetrics[0].Metrics {
		if hist, ok := m.Data.(metricdata.Histogram[float64]); ok && m.Name == metrics.LockHold.Name() {
			for _, p := range hist.DataPoints {
				fmt.Println(m.Name, p.Attributes.Encoded(attribute.DefaultEncoder()), p.Count)
			}
		}
	}
	// Output: docent.lock.hold docent.cause=released,docent.path=/orders,docent.recipe=mutex 2
}

// A real program has the tracer of its provider, and an exporter that sends spans to a collector.
func ExampleNewLocker() {
	srv, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	client, err := framework.New(srv.Addr())
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	mu, err := mutex.New(client, "/orders/7")
	if err != nil {
		log.Fatal(err)
	}
	exporter := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	lock, err := oteldocent.NewLocker(provider.Tracer("github.com/docent-zk/docent"), "mutex", mu)
	if err != nil {
		log.Fatal(err)
	}
	err = recipes.Do(context.Background(), lock, func(context.Context, *recipes.Hold) error {
		for _, span := range exporter.GetSpans() {
			fmt.Println(span.Name, span.Attributes[0].Value.AsString(), span.Attributes[1].Value.AsString())
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: docent.acquire mutex /orders/7
}

func lock(path string, m metrics.Metrics) {
	srv, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	client, err := framework.New(srv.Addr(), framework.WithMetrics(m))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	mu, err := mutex.New(client, path)
	if err != nil {
		log.Fatal(err)
	}
	hold, err := mu.Acquire(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	if err := hold.Release(); err != nil {
		log.Fatal(err)
	}
}
