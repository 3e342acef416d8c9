package promdocent_test

import (
	"github.com/prometheus/client_golang/prometheus"

	promdocent "github.com/docent-zk/docent/contrib/prometheus"
	"github.com/docent-zk/docent/framework"
)

// This function is on the page README.md.
var _ = measured

// fragment prometheus-metrics
func measured(servers string) (*framework.Client, error) {
	metrics, err := promdocent.New(prometheus.DefaultRegisterer)
	if err != nil {
		return nil, err
	}
	return framework.New(servers, framework.WithMetrics(metrics))
}

// end
