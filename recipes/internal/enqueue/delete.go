package enqueue

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework"
)

// deleteWait bounds how long a call that has failed waits for the deletion of its nodes.
const deleteWait = time.Second

// DeleteNodes deletes nodes that no hold is to have. The deletion does not depend on ctx. It
// goes on in the background if it takes longer than deleteWait or ctx ends.
func DeleteNodes(ctx context.Context, s *framework.Session, nodes ...string) {
	ctx, cancel := context.WithTimeout(ctx, deleteWait)
	defer cancel()
	err := s.DeleteGuaranteed(ctx, nodes...)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		s.Logger().Debug("deletion of the nodes of a failed attempt not confirmed yet",
			zap.Strings("nodes", nodes), zap.Error(err))
	}
}
