package leader

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/docent-zk/docent/recipes/internal/queue"
)

// Option configures an Election or a Latch.
type Option func(*config) error

type config struct {
	id       string
	identity bool
	kazoo    bool // the names of the nodes are kazoo's
	nameless bool // the data of those who have no id is empty
	delay    time.Duration
	requeue  func(error) bool
	mode     CloseMode
}

func newConfig(opts []Option) (config, error) {
	var cfg config
	for i, opt := range opts {
		if opt == nil {
			return config{}, fmt.Errorf("option %d is nil", i)
		}
		if err := opt(&cfg); err != nil {
			return config{}, err
		}
	}
	if cfg.id != "" && cfg.identity {
		return config{}, errors.New("WithID and WithIdentity exclude each other: both set who we are")
	}
	return cfg, nil
}

// data is that of the candidate's nodes.
func (c config) data() ([]byte, error) {
	switch {
	case c.identity:
		return queue.OwnIdentity()
	case c.id != "" || c.nameless:
		return []byte(c.id), nil
	}
	return new(queue.NodeData).Bytes()
}

// WithID sets who we are, which Participants and Observe show: any text. Without it, or if it is empty, it is this host's IP address in an
// Election, and empty in a Latch, as in Curator. Not together with WithIdentity. Curator: LeaderSelector.setId, the id of a
// LeaderLatch.
func WithID(id string) Option {
	return func(c *config) error {
		if !utf8.ValidString(id) {
			return fmt.Errorf("id %q is not UTF-8", id)
		}
		c.id = id
		return nil
	}
}

// WithIdentity sets who we are to host, process and process id, as a recipes.Identity. Not together with WithID.
func WithIdentity() Option {
	return func(c *config) error {
		c.identity = true
		return nil
	}
}

// WithKazooNames names the nodes as those of kazoo's Election, or Lock, which knows no others and so would not wait for them. Among Elections
// the names make no difference: with or without the option there is one leader on one path, and kazoo's are among the candidates. But
// Curator's LeaderSelector does not wait for nodes of these names. A Latch has no counterpart in kazoo, and refuses the option.
func WithKazooNames() Option {
	return func(c *config) error {
		c.kazoo = true
		return nil
	}
}

// WithLockDelay makes a new leader wait for d before it leads, if the last one vanished: it crashed, was cut off, or lost its node. Requests
// that it has sent may still be on their way to something that knows of no fencing tokens. After one that resigned nobody waits; to
// close the client, or to end the process, is not to resign.
//
// Leaders note in a node beside path, path with "-term" at its end, that they lead and that they resign: two requests more to
// begin a term, one more to resign. That node stays, and so do its parents, when nobody stands any more; after
// its deletion the next leader does not wait. All candidates should use the option alike: those who do not, such as Curator's, neither
// wait nor write. Consul calls it lock-delay; Curator has no counterpart.
func WithLockDelay(d time.Duration) Option {
	return func(c *config) error {
		if d <= 0 {
			return fmt.Errorf("lock delay %v must be positive", d)
		}
		c.delay = d
		return nil
	}
}

// WithRequeue says whether an Election stands again after the function of Run has returned err, or nil. Otherwise Run returns err. By
// default it always stands again. Curator: LeaderSelector.autoRequeue, off by default there:
//
//	leader.WithRequeue(func(error) bool { return false })
//
// To call Run again is LeaderSelector.requeue.
func WithRequeue(again func(err error) bool) Option {
	return func(c *config) error {
		if again == nil {
			return fmt.Errorf("requeue: nil function")
		}
		c.requeue = again
		return nil
	}
}

// CloseMode says whether the listeners of a Latch hear of the term that Close ends, or the end of the context of Start. Curator:
// LeaderLatch.CloseMode.
type CloseMode int

const (
	// Silent: they do not hear of it.
	Silent CloseMode = iota
	// NotifyLeader: they hear that the term has ended, before Close returns.
	NotifyLeader
)

// String returns the name of the constant.
func (m CloseMode) String() string {
	switch m {
	case Silent:
		return "Silent"
	case NotifyLeader:
		return "NotifyLeader"
	}
	return fmt.Sprintf("CloseMode(%d)", int(m))
}

func (m CloseMode) check() error {
	if m != Silent && m != NotifyLeader {
		return fmt.Errorf("%v is neither Silent nor NotifyLeader", m)
	}
	return nil
}

// WithCloseMode sets what the listeners of a Latch hear when Close, or the end of the context of Start, ends a term. Default Silent.
func WithCloseMode(mode CloseMode) Option {
	return func(c *config) error {
		if err := mode.check(); err != nil {
			return err
		}
		c.mode = mode
		return nil
	}
}
