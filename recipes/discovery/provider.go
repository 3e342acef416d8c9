package discovery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/option"
)

// ErrNoInstance means that no instance can be picked.
var ErrNoInstance = errors.New("discovery: no instance")

// Provider picks instances of a View for the requests of a program. It leaves out instances that are
// disabled, and those that the program has reported as failing. It has no goroutine, and need not be
// closed. It is safe for concurrent use. Curator: ServiceProvider.
type Provider struct {
	view     *View
	cfg      providerConfig
	failures *failures
}

// Option configures a Provider.
type Option func(*providerConfig) error

type providerConfig struct {
	strategy  Strategy
	filters   []func(*Instance) bool
	threshold int // 0: failures are not counted
	period    time.Duration
}

// WithStrategy sets how the Provider picks. The default is RoundRobin. Curator: providerStrategy.
func WithStrategy(s Strategy) Option {
	return func(c *providerConfig) error {
		if s == nil {
			return errors.New("WithStrategy: nil strategy")
		}
		c.strategy = s
		return nil
	}
}

// WithFilter leaves out each instance for which keep returns false. Several goroutines may call keep
// at the same time. Curator: additionalFilter.
func WithFilter(keep func(*Instance) bool) Option {
	return func(c *providerConfig) error {
		if keep == nil {
			return errors.New("WithFilter: nil function")
		}
		c.filters = append(c.filters, keep)
		return nil
	}
}

// WithFailures sets when an instance is left out: once Fail was called threshold times within
// period, and then for the same period. The default is 2 times and 30 seconds. A threshold of 0
// means never, with any period. Curator: DownInstancePolicy, whose period begins with the first
// failure.
func WithFailures(threshold int, period time.Duration) Option {
	return func(c *providerConfig) error {
		if threshold < 0 {
			return fmt.Errorf("WithFailures: threshold %d is negative", threshold)
		}
		if period <= 0 && threshold > 0 {
			return fmt.Errorf("WithFailures: period %v is not positive", period)
		}
		c.threshold, c.period = threshold, period
		return nil
	}
}

// The defaults of WithFailures.
const (
	defaultThreshold = 2
	defaultPeriod    = 30 * time.Second
)

// NewProvider returns a Provider that picks from view. Several Providers may have the same View. It
// returns an error for a nil or zero View, and for an invalid option.
func NewProvider(view *View, opts ...Option) (*Provider, error) {
	if view == nil {
		return nil, errors.New("new provider: nil View")
	}
	if !view.made() {
		return nil, fmt.Errorf("new provider: %w", errZeroView)
	}
	cfg := providerConfig{strategy: RoundRobin(), threshold: defaultThreshold, period: defaultPeriod}
	if err := option.Apply(&cfg, opts); err != nil {
		return nil, fmt.Errorf("new provider: %w", err)
	}
	return &Provider{view: view, cfg: cfg, failures: newFailures(cfg.threshold, cfg.period)}, nil
}

// Pick returns an instance for one request. It makes no request itself. It waits only until the view
// has been ready for the first time.
//
// While the connection is lost, Pick returns what the view has: [View.StaleSince] tells. The servers
// may have removed an instance meanwhile, so a program should report failures and pick again.
//
// Pick fails with ErrNoInstance if there is no instance, if all are left out, or if the Strategy
// returns nil; when ctx ends while it waits, and if ctx has ended; and with the error of the view if
// that is closed. Curator: getInstance, which returns null.
func (p *Provider) Pick(ctx context.Context) (*Instance, error) {
	if p.view == nil {
		return nil, fmt.Errorf("%w: discovery.Provider", framework.ErrZeroValue)
	}
	if err := p.view.wait(ctx, p.view.first); err != nil {
		return nil, err
	}
	if err := p.view.Err(); err != nil {
		return nil, fmt.Errorf("pick an instance of %s: %w", p.view.name, err)
	}
	all := p.view.shared()
	available := p.available(all)
	if len(available) == 0 {
		return nil, p.none(len(all))
	}
	if i := p.cfg.strategy(available); i != nil {
		return i, nil
	}
	return nil, fmt.Errorf("%w of %s: the strategy has picked none of %d", ErrNoInstance, p.view.name, len(available))
}

// none returns the error of Pick if no instance is available.
func (p *Provider) none(registered int) error {
	state := ""
	if since, stale := p.view.StaleSince(); stale {
		state = fmt.Sprintf(", as of %v, when the connection was lost", since.Format(time.RFC3339))
	}
	return fmt.Errorf("%w of %s: %d registered, none available%s", ErrNoInstance, p.view.name, registered, state)
}

// Instances returns all instances that Pick may return now. Curator: getAllInstances.
func (p *Provider) Instances() []*Instance {
	if p.view == nil {
		return nil
	}
	return slices.Clone(p.available(p.view.shared()))
}

// available returns the instances that may be picked. If these are all, it returns the same slice.
func (p *Provider) available(all []*Instance) []*Instance {
	failing := p.failures.now()
	out := func(i *Instance) bool {
		return i.Disabled || failing[i.key()] ||
			slices.ContainsFunc(p.cfg.filters, func(keep func(*Instance) bool) bool { return !keep(i) })
	}
	if !slices.ContainsFunc(all, out) {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), out)
}

// Fail reports that a request to the instance has failed for a reason that other requests to it would
// share, such as a refused connection. WithFailures says what follows. An instance that is registered
// again begins without failures. Curator: noteError.
func (p *Provider) Fail(i *Instance) {
	if p.view != nil && i != nil {
		p.failures.add(i.key())
	}
}
