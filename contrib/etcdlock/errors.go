package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

var (
	// ErrClosed means that the Client is closed.
	ErrClosed = errors.New("etcdlock: client closed")
	// ErrLeaseLost is the reason for the loss of a hold whose lease was revoked or has expired. It is a
	// part of Hold.Err, unless the deadline of the hold was reached first.
	ErrLeaseLost = errors.New("etcdlock: lease lost")
	// ErrKeyDeleted is the reason for the loss of a hold whose key was deleted by another client, or was
	// written and so taken from its lease. It is a part of Hold.Err.
	ErrKeyDeleted = errors.New("etcdlock: key deleted")
)

// errClosedBelow means that requests cannot be made any more.
var errClosedBelow = errors.New("the client of etcd is closed")

// errRevoked is the reason when etcd does not know the lease any more.
var errRevoked = fmt.Errorf("%w: etcd has revoked it, or it has expired", ErrLeaseLost)

var learner = rpctypes.ErrorDesc(rpctypes.ErrGRPCNotSupportedForLearner)

// transient reports whether a request that failed with err may succeed when it is made again, so
// that an acquire goes on.
func transient(err error) bool {
	for _, passing := range []error{context.DeadlineExceeded, rpctypes.ErrTooManyRequests, rpctypes.ErrNotLeader} {
		if errors.Is(err, passing) {
			return true
		}
	}
	if strings.Contains(err.Error(), learner) { // the next request may go to another server
		return true
	}
	switch codeOf(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Internal, codes.Aborted:
		return true
	case codes.Unknown:
		return slices.ContainsFunc(passingTexts, func(text string) bool { return strings.Contains(err.Error(), text) })
	}
	return false
}

// passingTexts are those of answers that pass, and that etcd gives no code.
var passingTexts = []string{
	context.DeadlineExceeded.Error(), // the server has noticed first that the time of the request is over
	"raft proposal dropped",          // the leader is being replaced
	"raft: stopped",                  // the server ends
}

// refused reports whether the servers have answered, and have not applied the request. Other errors do
// not tell: a request that takes the last space is applied, and answered with ErrNoSpace.
func refused(err error) bool {
	var answer rpctypes.EtcdError
	if !errors.As(err, &answer) {
		return false
	}
	switch answer.Code() {
	case codes.PermissionDenied, codes.Unauthenticated, codes.InvalidArgument:
		return true
	}
	return false
}

func codeOf(err error) codes.Code {
	var answer rpctypes.EtcdError
	if errors.As(err, &answer) {
		return answer.Code()
	}
	return status.Code(err)
}

// pause waits for d. It returns early when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// jitter returns three quarters of d to d, so that clients do not make their requests together.
func jitter(d time.Duration) time.Duration { return d - rand.N(d/4+1) }

// both returns a context that ends with ctx and with other. Its cause is that of the first to end.
func both(ctx, other context.Context) (context.Context, context.CancelFunc) {
	joined, end := context.WithCancelCause(ctx)
	stop := context.AfterFunc(other, func() { end(context.Cause(other)) })
	return joined, func() {
		stop()
		end(nil)
	}
}
