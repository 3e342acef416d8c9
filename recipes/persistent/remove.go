package persistent

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework"
)

// remove deletes the node. If a create may still be applied, remove waits for that and deletes that
// node too. It ends early when the client is closed or another Node takes the place.
func (k *keeper) remove() {
	k.failures = 0
	for {
		done, err := k.removeStep(k.owned)
		switch {
		case k.owned.Err() != nil:
			k.setRemoved(nil) // the node is another Node's
			return
		case done && !k.survives() && errors.Is(err, framework.ErrClosed):
			k.setRemoved(nil) // the servers delete the node
			return
		case done:
			k.setRemoved(err)
			return
		case err == nil:
			k.failures = 0
		default:
			k.pauseAfterFailure(k.owned, "the node cannot be deleted now: trying again", err)
		}
	}
}

// removeStep deletes the node, or waits until one may be there. done reports that nothing is left
// to do, or that err makes it impossible.
func (k *keeper) removeStep(ctx context.Context) (done bool, err error) {
	session, err := k.sessionOfNode(ctx)
	if session == nil {
		return err == nil || !isTransient(err), err
	}
	node, mine, err := k.find(ctx, session)
	switch {
	case err != nil:
		return !isTransient(err), err
	case mine:
		return k.removeNode(session, node)
	}
	k.setRemoved(nil)
	if len(k.lost) == 0 {
		return true, nil
	}
	return false, k.awaitLate(ctx, session, node)
}

// sessionOfNode returns a session in which the node can be read and deleted. It returns nil without
// an error if there is no node.
func (k *keeper) sessionOfNode(ctx context.Context) (*framework.Session, error) {
	switch {
	case k.name == "":
		return nil, nil // it was never created
	case k.survives():
		return k.client.Session(ctx)
	case k.session == nil || k.session.Err() != nil:
		return nil, nil // it was never created, or the servers delete it
	}
	return k.session, nil
}

// removeNode deletes the node that was read.
func (k *keeper) removeNode(session *framework.Session, node *found) (done bool, err error) {
	gone, err := k.delete(session, node)
	switch {
	case gone:
		k.setRemoved(nil)
		return len(k.lost) == 0, nil
	case err != nil && !isTransient(err):
		k.log.Warn("the node cannot be deleted", zap.Error(err))
		return true, err
	}
	return false, err
}

// delete deletes the node that was read, once. The node has to be read again if it is not gone and
// there is no error.
func (k *keeper) delete(session *framework.Session, node *found) (gone bool, err error) {
	err = once(context.Background(), func(ctx context.Context) error {
		return session.Delete(ctx, node.path, node.stat.Version)
	})
	switch {
	case err == nil || errors.Is(err, zk.ErrNoNode):
		k.deleted()
		return true, nil
	case isChanged(err):
		return false, nil
	}
	return false, err
}

// awaitLate waits until a create may have been applied. node is that of another owner, or nil.
func (k *keeper) awaitLate(ctx context.Context, session *framework.Session, node *found) error {
	if node != nil {
		k.awaitChange(ctx, NoLimit, node, nil)
		return nil
	}
	var stat *zk.Stat
	var watch *framework.Watch
	err := once(ctx, func(ctx context.Context) (err error) {
		stat, watch, err = session.ExistsW(ctx, k.name)
		return err
	})
	if err == nil && stat == nil { // otherwise it has just been created
		k.await(ctx, k.lateFor(), watch.Fired(), nil)
	}
	return err
}

// setRemoved ends the wait of Close. Only the first call counts.
func (n *Node) setRemoved(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	select {
	case <-n.removed:
	default:
		n.left = err
		close(n.removed)
	}
}
