package counter

import (
	"context"
	"encoding/binary"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/ctxerr"
)

// marker is an ephemeral child of the counter's node. Its data is the number of the last batch of
// this client that was applied. Its name is never used again, so a transaction that writes it is
// applied to this node only, and not to a later node with the same path and version.
type marker struct {
	session *framework.Session
	path    string // "": the client may not create it
}

// number returns the data of a marker.
func number(batch uint64) []byte { return binary.BigEndian.AppendUint64(nil, batch) }

// longestMarker is a name as long as that of any marker.
const longestMarker = "_c_00000000-0000-0000-0000-000000000000-marker--2147483648"

// newMarker creates a marker in the current session, and before that the counter's node if it is
// missing.
func (w *writer) newMarker(ctx context.Context, seed []byte) (*marker, error) {
	session, err := w.client.Session(ctx)
	if err != nil {
		return nil, err
	}
	for {
		path, err := session.Create(ctx, w.path+"/marker-", number(0),
			framework.Ephemeral(), framework.Sequential(), framework.Protected())
		switch {
		case err == nil:
			return &marker{session, path}, nil
		case ctxerr.Answered(ctx, err, zk.ErrNoAuth), ctxerr.Answered(ctx, err, zk.ErrNoChildrenForEphemerals):
			return &marker{session: session}, nil
		case !ctxerr.Answered(ctx, err, zk.ErrNoNode):
			return nil, err
		}
		if err := createNode(ctx, w.client, w.path, seed); err != nil {
			return nil, err
		}
	}
}

// dropMarker deletes the marker in the background, if there is one. What is known of the node is known
// in its session.
func (w *writer) dropMarker() {
	if w.marker != nil && w.marker.path != "" {
		bridge.OfSession(w.marker.session).DeleteLater(w.marker.path)
	}
	w.marker, w.known = nil, nil
}
