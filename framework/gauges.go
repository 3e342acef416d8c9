package framework

import (
	"maps"
	"sync"

	"github.com/docent-zk/docent/framework/metrics"
)

// gauges is what a client reports when its metrics are read.
type gauges struct {
	read   bool   // the metrics read gauges; it does not change
	remove func() // ends the reads

	mu   sync.Mutex               // nothing waits while it is held
	held map[metrics.Labels]int64 // locks held now; none is 0
}

// offerGauges lets the metrics read the client, if they read gauges. The client calls no code of the
// program then, so that no exporter can delay it.
func (c *core) offerGauges() {
	c.gauges.remove = func() {}
	if reader, ok := c.cfg.metrics.(metrics.GaugeReader); ok {
		c.gauges.read = true
		c.gauges.remove = reader.AddSource(c.readGauges)
	}
}

// addHeld counts n more locks held. The count of a lock that is not held is not kept.
func (g *gauges) addHeld(n int64, l metrics.Labels) {
	if !g.read {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held == nil {
		g.held = map[metrics.Labels]int64{}
	}
	if g.held[l] += n; g.held[l] == 0 {
		delete(g.held, l)
	}
}

func (g *gauges) heldNow() map[metrics.Labels]int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.held)
}

// addHeld counts n more locks held, of which the labels say the recipe and the path.
func (o ops) addHeld(n int64, l metrics.Labels) {
	if o.core != nil {
		o.core.gauges.addHeld(n, l)
	}
}

// readGauges implements metrics.Source.
func (c *core) readGauges(report func(metrics.Instrument, float64, metrics.Labels)) {
	for labels, n := range c.gauges.heldNow() {
		report(metrics.LocksHeld, float64(n), labels)
	}
	present := stateLabel(c.states.get())
	for _, state := range metrics.States() {
		value := 0.0
		if state == present {
			value = 1
		}
		report(metrics.ClientStates, value, metrics.Labels{State: state})
	}
	remaining := 0.0
	if s := c.currentSession(); s != nil && s.reason() == nil {
		report(metrics.SessionTimeout, s.timeout().Seconds(), metrics.Labels{})
		since, allowed := s.deadline()
		remaining = max(allowed-since.Elapsed(), 0).Seconds()
	}
	report(metrics.SessionRemaining, remaining, metrics.Labels{})
}

func (c *core) currentSession() *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current
}

// stateLabel returns the label for a state, "" for Closed.
func stateLabel(s State) string {
	switch s {
	case Connecting:
		return metrics.StateConnecting
	case Connected, Reconnected:
		return metrics.StateConnected
	case Suspended:
		return metrics.StateSuspended
	case Lost:
		return metrics.StateLost
	case AuthFailed:
		return metrics.StateAuthFailed
	}
	return ""
}
