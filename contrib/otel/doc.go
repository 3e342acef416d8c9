// Package oteldocent passes the measurements of docent's clients and locks to OpenTelemetry, and makes
// spans of acquires, holds and releases.
//
//	metrics, err := oteldocent.New(otel.Meter("github.com/docent-zk/docent"))
//	if err != nil {
//		return err
//	}
//	client, err := framework.New(connect, framework.WithMetrics(metrics))
//
// Names, units and descriptions are those of [metrics.Instruments]. The attributes are
// docent.recipe, docent.outcome, docent.cause and docent.state. The attribute docent.path is only
// there with [WithPaths], because the number of paths has no limit. Durations are in seconds, in
// buckets from a millisecond to an hour. Gauges are read at each collection, without a request to the
// servers.
//
// [NewLocker] makes a lock whose acquires, holds and releases are spans:
//
//	lock, err := oteldocent.NewLocker(otel.Tracer("github.com/docent-zk/docent"), "mutex", mu)
package oteldocent
