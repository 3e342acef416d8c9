package persistent

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/option"
	"github.com/docent-zk/docent/recipes/internal/nodeshape"
)

// Option configures a Node.
type Option func(*config) error

type config struct {
	modes      []string // the options that set a mode; without one the node is ephemeral
	ttl        time.Duration
	protected  bool
	sequential bool
	acl        []zk.ACL
	occupied   time.Duration // negative: the default
	ours       func(data []byte, stat zk.Stat) bool
}

// The names of the options that set a mode.
const (
	persistentMode = "WithPersistence"
	containerMode  = "WithContainer"
	ttlMode        = "WithTTL"
)

func newConfig(opts []Option) (config, error) {
	cfg := config{occupied: -1}
	if err := option.Apply(&cfg, opts); err != nil {
		return config{}, err
	}
	switch {
	case len(cfg.modes) > 1:
		return config{}, fmt.Errorf("%s and %s exclude each other", cfg.modes[0], cfg.modes[1])
	case cfg.sequential && cfg.is(containerMode):
		return config{}, errors.New("WithSequence and WithContainer exclude each other: a container has no number")
	case cfg.protected && cfg.ours != nil:
		return config{}, errors.New("WithTakeover needs a fixed path: it excludes WithProtection and WithSequence")
	}
	return cfg, nil
}

func init() {
	nodeshape.Set = func(opts any) []string {
		cfg, err := newConfig(opts.([]Option))
		if err != nil {
			return nil // New returns it
		}
		return cfg.shape()
	}
}

// shape returns the names of the options that set the mode or the name of the node.
func (c config) shape() []string {
	switch {
	case c.sequential:
		return append(c.modes, "WithSequence")
	case c.protected:
		return append(c.modes, "WithProtection")
	}
	return c.modes
}

func (c config) is(mode string) bool { return slices.Contains(c.modes, mode) }

// ephemeral reports whether the servers delete the node with its session.
func (c config) ephemeral() bool { return len(c.modes) == 0 }

// like reports whether nodes of both configurations are created in the same way.
func (c config) like(other config) bool {
	return slices.Equal(c.modes, other.modes) && c.ttl == other.ttl && slices.Equal(c.acl, other.acl)
}

// create returns the options with which the node is created.
func (c config) create() []framework.CreateOption {
	opts := append(c.replace(), framework.Parents())
	switch {
	case c.is(containerMode):
		opts = append(opts, framework.Container())
	case c.is(ttlMode):
		opts = append(opts, framework.TTL(c.ttl))
	}
	if c.sequential {
		opts = append(opts, framework.Protected(), framework.Sequential())
	}
	return opts
}

// requests returns the operations of the largest request that creates the node, or an even larger
// one, without the data.
func (c config) requests(path string) []framework.Op {
	opts := c.replace()
	if c.sequential {
		opts = append(opts, framework.Protected(), framework.Sequential())
	}
	ops := []framework.Op{framework.CreateOp(path, nil, opts...)}
	if c.ours != nil {
		ops = append(ops, framework.DeleteOp(path, -1)) // see takeOver
	}
	return ops
}

// replace returns the options with which an ephemeral node replaces another one.
func (c config) replace() (opts []framework.CreateOption) {
	if c.ephemeral() {
		opts = append(opts, framework.Ephemeral())
	}
	if c.acl != nil {
		opts = append(opts, framework.ACL(c.acl...))
	}
	return opts
}

// WithPersistence makes the node persistent. It stays when the session is lost and when the program
// ends without Close. If the answer to its create is lost, the Node recognizes the node by its data.
// If another client changes the data before that, the node counts as one of another owner, and stays.
// Curator: CreateMode.PERSISTENT.
func WithPersistence() Option { return mode(persistentMode) }

// WithContainer makes the node a container. The servers delete it some time after its last child
// was deleted, and the Node creates it again. Like a persistent node it stays when the program ends
// without Close. Curator: CreateMode.CONTAINER.
func WithContainer() Option { return mode(containerMode) }

// WithTTL makes the node one with a time to live. It survives a lost session. If the program ends
// without Close, the servers delete the node after d. The Node writes its data again each third of
// d, and so a watch on the data fires. The servers must run with extendedTypesEnabled. Curator:
// PersistentTtlNode, which writes a child instead.
func WithTTL(d time.Duration) Option {
	return func(c *config) error {
		if d < time.Millisecond || d > bridge.MaxTTL {
			return fmt.Errorf("WithTTL: %v is not between 1ms and %v", d, bridge.MaxTTL)
		}
		c.ttl = d
		return mode(ttlMode)(c)
	}
}

func mode(name string) Option {
	return func(c *config) error {
		if !c.is(name) {
			c.modes = append(c.modes, name)
		}
		return nil
	}
}

// WithProtection puts a GUID in front of the node's name, "_c_<uuid>-name". Each Node has another
// one, so no other program's node is in its way. Node.Path returns the path. Curator:
// useProtection.
func WithProtection() Option {
	return func(c *config) error {
		c.protected = true
		return nil
	}
}

// WithSequence appends a number to the node's name, ten digits. It implies WithProtection, because
// a sequential node could not be found after a lost answer otherwise. Each time that the node is
// created, its name has another GUID and another number. Curator: CreateMode.EPHEMERAL_SEQUENTIAL
// and others, which keep the first number.
func WithSequence() Option {
	return func(c *config) error {
		c.protected, c.sequential = true, true
		return nil
	}
}

// WithACL sets the node's ACL. It must let the client read, write and delete the node. Without it
// the client's framework.WithACL determines the ACL.
func WithACL(acl ...zk.ACL) Option {
	return func(c *config) error {
		if len(acl) == 0 {
			return errors.New("WithACL: the list is empty")
		}
		c.acl = slices.Clone(acl)
		return nil
	}
}

// NoLimit is a time that does not end, for WithOccupiedTimeout.
const NoLimit = time.Duration(math.MaxInt64)

// WithOccupiedTimeout sets for how long the Node waits for a node of another program to be deleted
// from its path. After that it ends with ErrOccupied. 0 is not to wait. The default is twice the
// longest timeout that the servers have granted the session: an ephemeral node that a crashed process
// has left is deleted by then, if that process had the same session timeout. The nodes of this Node's
// own lost sessions are waited for without a limit.
func WithOccupiedTimeout(d time.Duration) Option {
	return func(c *config) error {
		if d < 0 {
			return fmt.Errorf("WithOccupiedTimeout: %v is negative", d)
		}
		c.occupied = d
		return nil
	}
}

// WithTakeover lets the Node take over a node of an earlier process: one that ours reports as such
// by its data and Stat, for example by an id in the data. A Node takes over only before its node
// has been there for the first time. Later, the other process counts as the owner. If this Node is
// ephemeral, it replaces the node in one transaction. Otherwise the node must not be ephemeral: it
// stays, and becomes this Node's.
//
// ours is called by the Node's goroutine and must not wait. It must be true only for nodes that
// this program alone creates: no transaction can make sure that the node was not replaced after
// ours was called.
func WithTakeover(ours func(data []byte, stat zk.Stat) bool) Option {
	return func(c *config) error {
		if ours == nil {
			return errors.New("WithTakeover: nil function")
		}
		c.ours = ours
		return nil
	}
}
