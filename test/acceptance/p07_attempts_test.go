package acceptance_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

const p07Retries = 4

// A call makes no more attempts than the retry policy allows. With 4 retries that is 5, and not 25
// if the program repeats the call by such a policy of its own. Waiting in a queue, keeping a node
// and guaranteed deletions are left out, because they continue until they succeed. The connection
// is lost at every attempt, before or after the server processes it.
func TestP07_AttemptsDoNotMultiply(t *testing.T) { // not parallel: it would starve the tests in real time
	onlyInProcess(t, "the in-process server counts what it never answers")
	policy := retry.Times(p07Retries, 10*time.Millisecond)
	calls := p07Calls("Client.Session", "Client.Outlast", "Client.WaitConnected", // send nothing
		"Client.DeleteGuaranteed", "Session.DeleteGuaranteed", // continue until they succeed
		"Mutex.Acquire of what is held",          // waits in the queue, also through failures
		"Condition.Wait", "Condition.WaitWithin", // last as long as the session
		"Condition.Signal", "Condition.Broadcast", // the same
		"Lock.TryAcquire",                                        // reads the node of the lock that it has, too
		"group.Join", "Node.WaitReady", "Registration.WaitReady", // wait for the node, also through failures
		"View.WaitReady", "Provider.Pick", // wait for a cache, also through failures
		"Barrier.Wait", "Double.Enter", "Cyclic.Await", "CountDown.Wait", // wait for others, also through failures
		"CountDown.CountDown", "CountDown.Delete") // continue until they succeed
	for name, call := range calls {
		for op := range p07Sends(t, call) {
			for what, action := range map[string]fault.Action{"before": fault.DropBefore(),
				"after": fault.DropAfter()} {
				t.Run(fmt.Sprintf("%s/%v/%s", name, op, what), func(t *testing.T) {
					p07Attempts(t, op, action, func(ctx context.Context, on *p07Subject) error { return call(ctx, on) })
				})
				t.Run(fmt.Sprintf("%s/%v/%s, repeated", name, op, what), func(t *testing.T) {
					p07Attempts(t, op, action, func(ctx context.Context, on *p07Subject) error {
						return retry.Do(ctx, policy, nil, func(ctx context.Context) error { return call(ctx, on) })
					})
				})
			}
		}
	}
}

// p07Sends returns the requests that a call sends without faults.
func p07Sends(t *testing.T, call p07Call) (sends fault.Counts) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		on := p07Ready(t, srv)
		srv.ResetCounts()
		_, _ = p07Timed(t, on, call)
		sends = srv.Requests()
	})
	delete(sends, fault.OpPing)
	return sends
}

// p07Ready returns a client with all nodes that the calls need.
func p07Ready(t *testing.T, srv *zktest.Server) *p07Subject {
	require.NoError(t, srv.Create("/old", nil))
	require.NoError(t, srv.Create(p07Lock, nil)) // the search for what a lost transaction has created is one, too
	on := p07Connect(t, srv, framework.WithRetry(retry.Times(p07Retries, 10*time.Millisecond)))
	p07Hold(t, on)
	return on
}

func p07Attempts(t *testing.T, op fault.Op, action fault.Action, call p07Call) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		on := p07Ready(t, srv)
		fail := func(path string) *fault.Rule {
			return srv.On(fault.Match{Op: op, Path: path, Times: fault.Always}, action)
		}
		// The session makes requests by itself: the hold reads its node for a watch.
		held, rules := fail(p07Held), []*fault.Rule{fail("/old"), fail("/new"), fail("/p07")}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_ = call(ctx, on) // some calls find that an attempt was applied
		attempts := 0
		for _, rule := range rules {
			attempts += rule.Hits()
			rule.Remove()
		}
		held.Remove()
		if op != fault.OpGetData || attempts == 0 { // otherwise they are the hold's
			attempts += held.Hits()
		}
		require.Positive(t, attempts)
		require.LessOrEqual(t, attempts, p07Retries+1)
	})
}
