// Package promdocent passes the measurements of docent's clients and locks to Prometheus.
//
//	metrics, err := promdocent.New(prometheus.DefaultRegisterer)
//	...
//	client, err := framework.New(connect, framework.WithMetrics(metrics))
//
// The names are those of [metrics.Instruments] with underscores, and with _seconds and _total where
// Prometheus has them: docent_lock_wait_seconds, docent_lock_losses_total, docent_lock_held. The
// labels are recipe, outcome, cause and state. The label path is only there with [WithPaths],
// because the number of paths has no limit. Durations are in seconds, in buckets from a millisecond
// to an hour.
//
// Gauges are read at each scrape, without a request to the servers. A scrape that is slow delays no
// client.
package promdocent
