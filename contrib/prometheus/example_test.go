package promdocent_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"
	"path"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	promdocent "github.com/docent-zk/docent/contrib/prometheus"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
)

// The locks below /orders are one series. A real program has prometheus.DefaultRegisterer and
// promhttp.Handler.
func Example() {
	registry := prometheus.NewRegistry()
	adapter, err := promdocent.New(registry, promdocent.WithPaths(path.Dir))
	if err != nil {
		log.Fatal(err)
	}
	srv, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	client, err := framework.New(srv.Addr(), framework.WithMetrics(adapter))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	for _, name := range []string{"/orders/7", "/orders/8"} {
		mu, err := mutex.New(client, name)
		if err != nil {
			log.Fatal(err)
		}
		hold, err := mu.Acquire(context.Background())
		if err != nil {
			log.Fatal(err)
		}
		defer hold.Release()
	}
	for line := range strings.Lines(scrape(registry)) {
		if strings.HasPrefix(line, "docent_lock_held") || strings.HasPrefix(line, "docent_client_state") {
			fmt.Print(line)
		}
	}
	// Output:
	// docent_client_state{state="auth_failed"} 0
	// docent_client_state{state="connected"} 1
	// docent_client_state{state="connecting"} 0
	// docent_client_state{state="lost"} 0
	// docent_client_state{state="suspended"} 0
	// docent_lock_held{path="/orders",recipe="mutex"} 2
}

// scrape returns what Prometheus reads.
func scrape(registry *prometheus.Registry) string {
	answer := httptest.NewRecorder()
	handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	handler.ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	return answer.Body.String()
}
