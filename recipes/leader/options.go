package leader

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/docent-zk/docent/internal/option"
	"github.com/docent-zk/docent/recipes/internal/nodedata"
)

// Option configures an Election or a Latch.
type Option func(*config) error

type config struct {
	id       string
	identity bool
	kazoo    bool // the names of the nodes are kazoo's
	emptyID  bool // without an id the data is empty
	delay    time.Duration
	requeue  func(error) bool
}

func newConfig(opts []Option) (config, error) {
	var cfg config
	if err := option.Apply(&cfg, opts); err != nil {
		return config{}, err
	}
	if cfg.id != "" && cfg.identity {
		return config{}, errors.New("WithID and WithIdentity exclude each other: both set the id")
	}
	return cfg, nil
}

// data returns the data of the candidate's nodes.
func (c config) data() ([]byte, error) {
	switch {
	case c.identity:
		return nodedata.OwnIdentity()
	case c.id != "" || c.emptyID:
		return []byte(c.id), nil
	}
	return new(nodedata.Data).Bytes()
}

// WithID sets the id of the candidate, which Participants and Observe show. It can be any text.
// Without it, or if it is empty, the id is this host's IP address in an Election, and empty in a
// Latch, as in Curator. WithID and WithIdentity exclude each other. Curator: LeaderSelector.setId,
// the id of a LeaderLatch.
func WithID(id string) Option {
	return func(c *config) error {
		if !utf8.ValidString(id) {
			return fmt.Errorf("WithID: %q is not UTF-8", id)
		}
		c.id = id
		return nil
	}
}

// WithIdentity sets the id of the candidate to host, process and process id, as a recipes.Identity.
// WithIdentity and WithID exclude each other.
func WithIdentity() Option {
	return func(c *config) error {
		c.identity = true
		return nil
	}
}

// WithKazooNames names the nodes as kazoo's Election and Lock do. Those wait for no nodes of other
// names. Elections of docent with and without the option have one leader on one path, and kazoo's
// are among the candidates. Curator's LeaderSelector does not wait for nodes of these names. kazoo
// has no counterpart of a Latch, so NewLatch returns an error for the option.
func WithKazooNames() Option {
	return func(c *config) error {
		c.kazoo = true
		return nil
	}
}

// WithLockDelay makes a new leader wait for d before it leads, if its predecessor did not resign:
// it crashed, was cut off, or lost its node. Meanwhile requests that are still in flight from it
// can arrive. Use it for resources that know no fencing tokens. To close the client, or to end the
// process, is not to resign.
//
// Leaders note in a node beside path that they lead and that they resign. Its path is path with
// "-term" at the end. That takes two requests more to begin a term, and one more to resign. The
// node and its parents stay when there are no candidates any more. After its deletion the next
// leader does not wait.
//
// All candidates of a path should use the option. Those without it, such as Curator's, neither wait
// nor write the node. Consul calls it lock-delay. Curator has no counterpart.
func WithLockDelay(d time.Duration) Option {
	return func(c *config) error {
		if d <= 0 {
			return fmt.Errorf("WithLockDelay: %v is not positive", d)
		}
		c.delay = d
		return nil
	}
}

// WithRequeue sets whether an Election stands for election again after the function of Run has
// returned err, which may be nil. If again returns false, Run returns err. The default is always to
// stand again. To call Run again is LeaderSelector.requeue. Curator: LeaderSelector.autoRequeue,
// which is off by default there:
//
//	leader.WithRequeue(func(error) bool { return false })
func WithRequeue(again func(err error) bool) Option {
	return func(c *config) error {
		if again == nil {
			return fmt.Errorf("WithRequeue: nil function")
		}
		c.requeue = again
		return nil
	}
}
