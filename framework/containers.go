package framework

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework/internal/conn"
	"github.com/docent-zk/docent/framework/internal/znode"
	"github.com/docent-zk/docent/internal/hooks"
)

// CreateContainers creates path and its missing ancestors as containers, which the servers delete
// some time after their last child was deleted. It does not change existing nodes. On servers that
// do not know containers it creates persistent nodes. Curator: createContainers.
func (o ops) CreateContainers(ctx context.Context, path string) error {
	c := o.call("create containers", path, repeatable)
	_, err := run(ctx, o, c, func(ctx context.Context, s *session) (nothing, error) {
		return nothing{}, o.ensure(ctx, s, c.full)
	})
	return err
}

// maxEnsures is how often parents are created again before a missing node is an error.
const maxEnsures = hooks.MaxEnsures

// ensure creates full and its missing ancestors. The servers may delete an existing container
// before something is created in it, or only the ZooKeeper leader may know of the deletion. Then
// ensure starts again.
func (o ops) ensure(ctx context.Context, s *session, full string) (err error) {
	for range maxEnsures {
		if err = o.ensureOnce(ctx, s, full); !isNoNode(err) {
			break
		}
	}
	return err
}

// ensureOnce searches upwards for an existing node, and then creates nodes downwards. So it needs
// no permission above the existing node.
func (o ops) ensureOnce(ctx context.Context, s *session, full string) error {
	var missing []string
	for ; full != "/"; full = znode.Parent(full) {
		r, err := s.read(ctx, watchKey{full, watchExists})
		if errors.Is(err, zk.ErrNoAuth) {
			break // the node may exist, but cannot be read
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

// createContainer makes one request for a container. Once the servers have refused containers as
// unknown, it makes one request for a persistent node.
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

// awaitHangup waits for the end of the connection. The server closes it after an operation that it
// does not know, and requests sent before that are lost.
func (s *session) awaitHangup(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, hangupTimeout)
	defer cancel()
	_ = s.await(ctx, func() bool { return !s.link }) // on an error the next attempt fails too
}
