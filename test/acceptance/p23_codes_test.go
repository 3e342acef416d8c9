package acceptance_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// p23Meaning is what an answer with a code means for a write that was sent once.
type p23Meaning struct {
	outcome   framework.Outcome
	transient bool
	is        error // nil: only a framework.ServerError with the code
}

func p23Final(is error) p23Meaning { return p23Meaning{framework.NotApplied, false, is} }

// p23NextSession is for codes that are retryable for a Client, which gets another session soon.
var p23NextSession = p23Meaning{framework.NotApplied, true, framework.ErrSessionLost}

// p23Codes are all codes of ZooKeeper, and one that it does not have.
var p23Codes = map[zktest.Code]p23Meaning{
	-1:   p23Final(nil),                           // system error
	-2:   p23Final(framework.ErrRolledBack),       // runtime inconsistency
	-3:   p23Final(nil),                           // data inconsistency
	-4:   {framework.Unknown, true, nil},          // connection loss
	-5:   p23Final(nil),                           // marshalling error
	-6:   p23Final(framework.ErrUnimplemented),    // unimplemented
	-7:   {framework.Unknown, true, nil},          // operation timeout
	-8:   p23Final(zk.ErrBadArguments),            // bad arguments
	-12:  p23NextSession,                          // unknown session
	-13:  p23Final(nil),                           // new configuration has no quorum
	-14:  p23Final(nil),                           // reconfiguration in progress
	-100: p23Final(zk.ErrAPIError),                // API error
	-101: p23Final(zk.ErrNoNode),                  // no node
	-102: p23Final(zk.ErrNoAuth),                  // no auth
	-103: p23Final(zk.ErrBadVersion),              // bad version
	-108: p23Final(zk.ErrNoChildrenForEphemerals), // no children for ephemerals
	-110: p23Final(zk.ErrNodeExists),              // node exists
	-111: p23Final(zk.ErrNotEmpty),                // not empty
	-112: p23NextSession,                          // session expired
	-113: p23Final(nil),                           // invalid callback
	-114: p23Final(zk.ErrInvalidACL),              // invalid ACL
	-115: p23Final(framework.ErrAuthFailed),       // auth failed
	-118: {framework.NotApplied, true, zk.ErrSessionMoved},
	-119: p23Final(nil),                    // not read-only
	-120: p23Final(nil),                    // ephemeral on a local session
	-121: p23Final(nil),                    // no such watcher
	-122: {framework.Unknown, true, nil},   // request timeout
	-123: p23Final(zk.ErrReconfigDisabled), // reconfiguration disabled
	-124: p23Final(nil),                    // session closed: requires SASL authentication
	-125: p23Final(nil),                    // quota exceeded
	-127: {framework.NotApplied, true, nil},
	-999: p23Final(nil), // not a code of ZooKeeper
}

// Every error code that a server can send becomes an error, by name or by number. It has the
// outcome of the operation and reports whether a retry can help.
func TestP23_EveryErrorCodeHasAMeaning(t *testing.T) {
	t.Parallel()
	onlyInProcess(t, "it takes a server that answers with any code at will")
	for code, want := range p23Codes {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
				require.NoError(t, srv.Create("/node", nil))
				c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.DialContext),
					framework.WithRetry(retry.Never()))
				answer := srv.On(fault.Match{Op: fault.OpSetData, Path: "/node"}, fault.Fail(code))
				_, err := c.Set(t.Context(), "/node", nil, -1)
				require.Equal(t, 1, answer.Hits())
				p23Means(t, err, code, want)
			})
		})
	}
}

func p23Means(t *testing.T, err error, code zktest.Code, want p23Meaning) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, want.outcome, framework.OutcomeOf(err), "%v", err)
	require.Equal(t, want.transient, framework.IsTransient(err), "%v", err)
	var failed *framework.Error
	require.ErrorAs(t, err, &failed)
	require.Equal(t, "/node", failed.Path)
	if want.is != nil {
		require.ErrorIs(t, err, want.is)
		return
	}
	var server *framework.ServerError
	require.ErrorAs(t, err, &server)
	require.EqualValues(t, code, server.Code)
}

// What ZooKeeper refuses by itself, because of a missing node, a version, a permission and the
// like, has its own error. The outcome is not applied, and the error is not retryable.
func TestP23_RefusalsOfServersAreTheirOwnErrors(t *testing.T) {
	t.Parallel()
	c, root := testzk.Connected(t, testzk.Connect(), long()), testzk.Path(t)
	ctx := testzk.Context(t)
	create := func(path string, opts ...framework.CreateOption) error {
		_, err := c.Create(ctx, root+path, nil, opts...)
		return err
	}
	require.NoError(t, c.CreateContainers(ctx, root))
	require.NoError(t, create("/full/child", framework.Parents()))
	require.NoError(t, create("/short", framework.Ephemeral()))
	require.NoError(t, create("/secret", framework.ACL(zk.DigestACL(zk.PermAll, "some", "body")...)))
	set := func(path string, version int32) error { _, err := c.Set(ctx, root+path, nil, version); return err }
	for want, err := range map[error]error{
		zk.ErrNoNode:                  set("/none", -1),
		zk.ErrBadVersion:              set("/full", 7),
		zk.ErrNodeExists:              create("/full"),
		zk.ErrNotEmpty:                c.Delete(ctx, root+"/full", -1),
		zk.ErrNoChildrenForEphemerals: create("/short/child"),
		zk.ErrNoAuth:                  set("/secret", -1),
		zk.ErrInvalidACL: create("/none",
			framework.ACL(zk.ACL{Perms: zk.PermAll, Scheme: "none", ID: "such"})),
	} {
		require.ErrorIs(t, err, want)
		require.Equal(t, framework.NotApplied, framework.OutcomeOf(err), "%v", err)
		require.False(t, framework.IsTransient(err), "%v", err)
	}
}
