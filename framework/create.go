package framework

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework/internal/conn"
	"github.com/docent-zk/docent/framework/internal/znode"
	"github.com/docent-zk/docent/internal/hooks"
)

// CreateOption is an option of a create: the kind of the node, its ACL, its parents. The names are
// nouns and adjectives without With, unlike those of Option, because they say what is created, as
// ZooKeeper's modes do: an ephemeral, sequential node.
type CreateOption func(*creation)

// creation is a node to be created.
type creation struct {
	path      string // given by the caller
	full      string // path on the servers, with the protection
	data      []byte
	acl       []zk.ACL
	flags     int32
	ttl       time.Duration
	guid      string // "": not protected
	named     bool   // the whole name is the guid
	container bool
	parents   bool
	orSet     bool
	behind    func() // called when a request has been handed to the connection, unless nil
	err       error
}

// Ephemeral creates a node that the servers delete when the session ends. Curator:
// CreateMode.EPHEMERAL.
func Ephemeral() CreateOption { return func(c *creation) { c.flags |= zk.FlagEphemeral } }

// Sequential has the server append the parent's counter, ten digits, to the name. The path may then
// end in a slash. Curator: CreateMode.PERSISTENT_SEQUENTIAL, with Ephemeral EPHEMERAL_SEQUENTIAL.
func Sequential() CreateOption { return func(c *creation) { c.flags |= zk.FlagSequence } }

// Container creates a node that the servers delete some time after its last child was deleted. On
// servers that do not know containers it creates a persistent node. Curator: CreateMode.CONTAINER.
func Container() CreateOption { return func(c *creation) { c.container = true } }

// TTL creates a node that the servers may delete when it has no children and was not modified for
// d. They count d in milliseconds. They must run with extendedTypesEnabled. Curator: withTtl.
func TTL(d time.Duration) CreateOption {
	return func(c *creation) {
		c.ttl = d
		if d < time.Millisecond || d > hooks.MaxTTL {
			c.err = invalid("time to live %v is not between 1ms and %v", d, hooks.MaxTTL)
		}
	}
}

// Protected puts a GUID in front of the node's name ("_c_<uuid>-name", as Curator does). So the
// client can find the node after a lost answer, and repeats the create only if there is no such
// node. If the caller leaves before the outcome is known, the client deletes the node in the
// background. It also deletes what the servers create late, by a request whose answer was lost: the
// path of a protected node is for this create alone. Curator: withProtection.
func Protected() CreateOption { return func(c *creation) { c.guid = znode.GUID() } }

// Parents creates missing parents as containers, in one transaction with the node. Each missing
// parent costs one request. If more than 8 are missing, they are created before the node, by up to
// three requests each. Curator: creatingParentContainersIfNeeded.
func Parents() CreateOption { return func(c *creation) { c.parents = true } }

// ACL sets the node's ACL. Without it the function of WithACL determines the ACL. Curator: withACL.
func ACL(acl ...zk.ACL) CreateOption { return func(c *creation) { c.acl = acl } }

// OrSet sets the data of the node if it exists, of any version. The existing node keeps its kind, its
// ACL and its session: with Ephemeral it may belong to another session, and end with that one. The
// Result of CreateResult then has the Stat of the set, and no Czxid.
//
// If the node is deleted between the two requests, it is created. Like a set of any version, the
// create is not repeated after an unknown outcome, because that could overwrite what another client
// has written since. OrSet excludes Sequential and Protected, and is an error in a transaction.
// Curator: orSetData.
func OrSet() CreateOption { return func(c *creation) { c.orSet = true } }

func (o ops) creation(path string, data []byte, opts []CreateOption) creation {
	c := creation{path: path, data: data}
	for _, opt := range opts {
		if opt == nil {
			c.err = invalid("create option is nil")
			continue
		}
		opt(&c)
	}
	c.full = c.join(o.root)
	c.checkPath()
	c.checkKind()
	if c.err != nil {
		return c
	}
	switch {
	case c.named:
		c.guid = znode.Base(c.full)
	case c.guid != "":
		c.full = znode.Protect(c.full, c.guid)
	}
	if c.acl == nil {
		c.acl = o.core.acl(c.full)
	}
	c.err = checkSize(len(c.full) + len(c.data) + aclSize(c.acl))
	return c
}

func (c *creation) sequential() bool { return c.flags&zk.FlagSequence != 0 }

func (c *creation) join(root string) string {
	if c.sequential() {
		return znode.JoinPrefix(root, c.path)
	}
	return znode.Join(root, c.path)
}

func (c *creation) checkPath() {
	if c.err != nil {
		return
	}
	switch {
	case c.sequential():
		c.err = znode.ValidatePrefix(c.path)
	case c.path == "/" && c.guid != "":
		c.err = notApplied(fmt.Errorf("%w %q: there is no name to protect", ErrInvalidPath, c.path))
	default:
		c.err = znode.ValidatePath(c.path)
	}
}

func (c *creation) checkKind() {
	kinds := 0
	for _, is := range []bool{c.flags&zk.FlagEphemeral != 0, c.container, c.ttl != 0} {
		if is {
			kinds++
		}
	}
	switch {
	case c.err != nil:
	case kinds > 1:
		c.err = invalid("%s: ephemeral, container and time to live exclude each other", c.path)
	case c.container && c.sequential():
		c.err = invalid("%s: a container cannot be sequential", c.path)
	case c.orSet && (c.sequential() || c.guid != ""):
		c.err = invalid("%s: OrSet excludes Sequential and Protected: their names are new", c.path)
	}
}

// made reports whether c creates a node of that name. It is for protected nodes.
func (c *creation) made(name string) bool {
	if c.named {
		return name == c.guid
	}
	return znode.IsProtectedBy(name, c.guid)
}

func (c *creation) ephemeral() bool { return c.flags&zk.FlagEphemeral != 0 }

// acl returns the ACL for a node without an ACL of its own. The servers refuse an empty one.
func (c *core) acl(full string) []zk.ACL {
	if c.cfg.acl == nil {
		return openACL
	}
	return c.cfg.acl(full)
}

// openACL is the ACL by default. It is not changed.
var openACL = zk.WorldACL(zk.PermAll)

// Create creates a node and returns its path. For a sequential or protected node the path differs
// from the given one. After an unknown outcome Create is repeated only if the node is Protected. An
// ephemeral node is created in the session that was current at the first attempt, or not at all. If
// the outcome stays unknown, a protected node is deleted in the background.
//
// Create fails with zk.ErrNodeExists if the node exists, unless OrSet is given. It fails with
// zk.ErrNoNode if the parent does not exist, unless Parents is given, and with
// zk.ErrNoChildrenForEphemerals if the parent is ephemeral. Curator: create.
func (o ops) Create(ctx context.Context, path string, data []byte, opts ...CreateOption) (string, error) {
	r, err := o.CreateResult(ctx, path, data, opts...)
	return r.Path, err
}

// CreateResult is Create that returns the whole Result. Its Czxid is the transaction that created
// the node, unless the answer was lost. Curator: storingStatIn.
func (o ops) CreateResult(ctx context.Context, path string, data []byte, opts ...CreateOption) (Result, error) {
	if err := o.checkUsable(ctx); err != nil {
		return Result{}, &Error{"create", path, NotApplied, err}
	}
	node := o.creation(path, data, opts)
	c := call{name: "create", path: path, err: node.err}
	if node.ephemeral() {
		var err error
		if o, err = o.bind(ctx, c); err != nil {
			return Result{}, err
		}
	}
	created, err := protect(ctx, o, c, []creation{node},
		func(ctx context.Context, s *session, late func(Result, error)) (Result, error) {
			return o.createOnce(ctx, s, node, late)
		},
		func(found []string) Result { return Result{Path: strings.Join(found, "")} }, // at most one path
		func(created Result) owned { return owned{[]string{created.Path}, created.Czxid} })
	if err != nil {
		return Result{}, err
	}
	created.Path = znode.Strip(o.root, created.Path)
	return created, nil
}

// createOnce creates a node, or sets its data if OrSet was given and the node exists. If its parent
// is missing, it creates the parents too, provided that Parents was given or the parent is the
// root of a namespace.
func (o ops) createOnce(ctx context.Context, s *session, node creation, late func(Result, error)) (Result, error) {
	for {
		created, err := s.create(ctx, node, late)
		if isNoNode(err) && o.createsParents(&node) {
			created, err = o.createWithParents(ctx, s, &node, late)
		}
		if !node.orSet || !errors.Is(err, zk.ErrNodeExists) {
			return created, err
		}
		stat, err := s.set(ctx, node.full, node.data, -1)
		if !isNoNode(err) {
			return Result{Path: node.full, Stat: stat}, err
		} // it was deleted meanwhile
	}
}

// create makes one request, or at most two for a container.
func (s *session) create(ctx context.Context, node creation, late func(Result, error)) (Result, error) {
	if node.container {
		return s.createContainer(ctx, node, late)
	}
	return s.send(ctx, node, node.request(), late)
}

// send makes a request that creates a node. The result has the path on the servers.
func (s *session) send(
	ctx context.Context, node creation, request conn.Request, late func(Result, error),
) (Result, error) {
	return askThen(ctx, s, late, request, node.behind, func(reply conn.Reply) (Result, error) {
		full, err := reply.Path()
		if err != nil {
			return Result{}, err
		}
		return Result{Path: full, Czxid: reply.Zxid}, nil
	})
}

// request returns the request that creates the node, which is not a container.
func (c *creation) request() conn.Request {
	if c.ttl == 0 {
		return conn.Create(c.full, c.data, c.acl, c.flags)
	}
	return conn.CreateTTL(c.full, c.data, c.acl, c.ttlFlags(), c.ttl)
}

// operation returns the operation of a transaction that creates the node.
func (c *creation) operation(noContainers bool) any {
	if c.ttl != 0 {
		return &zk.CreateTTLRequest{
			Path: c.full, Data: c.data, Acl: c.acl, Flags: c.ttlFlags(), Ttl: c.ttl.Milliseconds(),
		}
	}
	flags := c.flags
	if c.container && !noContainers {
		flags = zk.FlagContainer
	}
	return &zk.CreateRequest{Path: c.full, Data: c.data, Acl: c.acl, Flags: flags}
}

func (c *creation) ttlFlags() int32 {
	if c.sequential() {
		return zk.FlagPersistentSequentialWithTTL
	}
	return zk.FlagTTL
}
