package framework

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework/internal/conn"
	"github.com/docent-zk/docent/framework/internal/znode"
)

// CreateContainers creates path and its missing ancestors as containers, which the servers delete some time after their last child
// has gone. What exists stays as it is. Servers that do not know containers get persistent nodes. Curator: createContainers.
func (o ops) CreateContainers(ctx context.Context, path string) error {
	c := o.call("create containers", path, repeatable)
	_, err := run(ctx, o, c, func(ctx context.Context, s *session) (nothing, error) {
		return nothing{}, o.ensure(ctx, s, c.full)
	})
	return err
}

// maxEnsures is how often ensure begins again before a missing node is an error.
const maxEnsures = 10

// ensure creates full and what is missing above it. A container that it has found may be reaped before something is created in it, or
// be known as reaped only to the leader: then it begins again.
func (o ops) ensure(ctx context.Context, s *session, full string) (err error) {
	for range maxEnsures {
		if err = o.ensureOnce(ctx, s, full); !isNoNode(err) {
			break
		}
	}
	return err
}

// ensureOnce looks upwards for something that exists, so that it needs no permission above that, then creates downwards.
func (o ops) ensureOnce(ctx context.Context, s *session, full string) error {
	var missing []string
	for ; full != "/"; full = znode.Parent(full) {
		r, err := s.read(ctx, watchKey{full, watchExists})
		if errors.Is(err, zk.ErrNoAuth) {
			break // there is something that we may not read
		}
		if err != nil {
			return err
		}
		if r.stat != nil {
			break
		}
		missing = append(missing, full)
	}
	for i := len(missing) - 1; i >= 0; i-- {
		_, err := s.createContainer(ctx, creation{full: missing[i], data: []byte{}, acl: o.core.acl(missing[i])}, nil)
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return err
		}
	}
	return nil
}

// createContainer makes one request for a container, or for a persistent node once the servers have said that they do not know
// containers.
func (s *session) createContainer(ctx context.Context, node creation, late func(Result, error)) (Result, error) {
	if !s.core.noContainers.Load() {
		created, err := s.send(ctx, node, conn.CreateContainer(node.full, node.data, node.acl), late)
		if !errors.Is(err, ErrUnimplemented) {
			return created, err
		}
		s.core.noContainers.Store(true)
		s.core.cfg.log.Warn("the servers do not know containers: using persistent nodes", zap.String("path", node.full))
		s.awaitHangup(ctx)
	}
	return s.send(ctx, node, conn.Create(node.full, node.data, node.acl, zk.FlagPersistent), late)
}

// hangupTimeout is how long a server may take to close the connection.
const hangupTimeout = time.Second

// awaitHangup waits for the end of the connection, which the server closes after an operation that it does not know: what is sent
// before that is lost.
func (s *session) awaitHangup(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, hangupTimeout)
	defer cancel()
	_ = s.await(ctx, func() bool { return !s.link }) // whatever the reason, the next attempt finds out
}
