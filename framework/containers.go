package framework

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

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

// ensure looks upwards for something that exists, so that it needs no permission above that, then creates downwards.
func (o ops) ensure(ctx context.Context, s *session, full string) error {
	var missing []string
	for ; full != "/"; full = znode.Parent(full) {
		r, err := s.read(ctx, watchKey{full, watchExists}, false)
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
		err := s.createContainer(ctx, missing[i], []byte{}, o.core.acl(missing[i]))
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return err
		}
	}
	return nil
}

// createContainer makes one request for a container, or for a persistent node once the servers have said that they do not know
// containers. They close the connection when they say it.
func (s *session) createContainer(ctx context.Context, full string, data []byte, acl []zk.ACL) error {
	if !s.core.noContainers.Load() {
		_, err := attempt(ctx, s, nil, func(c *zk.Conn) (string, error) {
			return c.CreateContainer(full, data, zk.FlagContainer, acl)
		})
		if !errors.Is(err, ErrUnimplemented) {
			return err
		}
		s.core.noContainers.Store(true)
		s.core.cfg.log.Warn("the servers do not know containers: using persistent nodes", zap.String("path", full))
	}
	_, err := attempt(ctx, s, nil, func(c *zk.Conn) (string, error) { return c.Create(full, data, zk.FlagPersistent, acl) })
	return err
}
