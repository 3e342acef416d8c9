package barrier_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/barrier"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

const readyPath = path + "/ready"

func TestMembersEnterAndLeaveTogether(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		all := clients(t, srv, 5)
		for range 3 { // at the same path
			entering := members(t, all[:4], 5)
			settle()
			allWait(entering)
			entering = append(entering, members(t, all[4:], 5)...)
			var leaving []*call[struct{}]
			for i, e := range returned(entering) {
				require.NoError(t, e.Err())
				if i == 2 {
					settle()
					allWait(leaving)
				}
				leaving = append(leaving, leave(t, e))
			}
			returned(leaving)
			require.Equal(t, "/barrier container\n", srv.Tree())
		}
	})
}

func TestMembersOfOneClientAndOneDouble(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		d := newDouble(t, client(t, srv, "a"), path, 3)
		first, second := enter(t, d), enter(t, d)
		settle()
		first.waits()
		for _, e := range returned([]*call[*barrier.Entry]{first, second, enter(t, d)}) {
			leave(t, e)
		}
		settle()
		require.Equal(t, "/barrier container\n", srv.Tree())
	})
}

func TestNodesOfADoubleBarrier(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		d, err := barrier.NewDouble(client(t, srv, "a"), path, 1, barrier.WithData([]byte("x")))
		require.NoError(t, err)
		e, err := d.Enter(t.Context())
		require.NoError(t, err)
		require.Regexp(t, "^/barrier container\n"+
			"/barrier/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12} \"x\" ephemeral of a\n"+
			"/barrier/ready \"x\"\n$", srv.Tree())
		require.NoError(t, e.Leave(t.Context()))
		require.NoError(t, e.Leave(t.Context()), "again")
	})
}

// More members than n may enter, and members may come while others are inside.
func TestTheNumberIsNoLimit(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		all := clients(t, srv, 5)
		entries := returned(members(t, all[:3], 2))
		settle()
		entries = append(entries, returned(members(t, all[3:], 2))...)
		leaving := leaveAll(t, entries)
		returned(leaving)
		require.Equal(t, "/barrier container\n", srv.Tree())
	})
}

// One member of the round is still inside, and the others have given up.
func TestMemberThatComesWhileAnotherIsInsideEnters(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		all := clients(t, srv, 4)
		entries := returned(members(t, all[:3], 3))
		given, cancel := context.WithCancel(t.Context())
		cancel()
		for _, e := range entries[:2] {
			require.ErrorIs(t, e.Leave(given), context.Canceled)
		}
		settle()
		late := returned(members(t, all[3:], 3))[0]
		returned([]*call[struct{}]{leave(t, late), leave(t, entries[2])})
		require.Equal(t, "/barrier container\n", srv.Tree())
	})
}

// All older members have crashed. The one that came late waits in Leave for one that came late as well, and for none
// that waits in Enter.
func TestLateMemberLeavesWithThoseThatAreInside(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		all := clients(t, srv, 7)
		returned(members(t, all[:4], 4))
		late := returned(members(t, all[4:6], 4))
		for _, c := range []string{"c0", "c1", "c2", "c3"} {
			expire(t, srv, c)
		}
		settle()
		next := enter(t, newDouble(t, all[6], path, 4))
		settle()
		next.waits()
		leaving := leave(t, late[0])
		settle()
		leaving.waits()
		leave(t, late[1]).returns()
		leaving.returns()
		next.waits()
		require.Len(t, childrenOf(t, srv), 1, "the one that waits")
	})
}

// A member comes late, and has no answer to its write. Then all older members crash. It is inside, because others see
// the write.
func TestLateMemberWhoseAnswerIsLostIsInside(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		all := clients(t, srv, 4)
		returned(members(t, all[:3], 3))
		lost := srv.On(fault.Match{Client: "c3", Op: fault.OpSetData}, fault.DropAfter())
		late := enter(t, newDouble(t, all[3], path, 3))
		require.NoError(t, lost.Wait(testzk.Context(t)))
		srv.Client("c3").Refuse(true)
		for _, c := range []string{"c0", "c1", "c2"} {
			expire(t, srv, c)
		}
		srv.Client("c3").Refuse(false)
		leave(t, late.returns()).returns()
		require.Empty(t, childrenOf(t, srv))
	})
}

// A member has come, and has not looked yet, when all others leave. They do not wait for it, and it waits for the next
// round.
func TestMembersLeaveAlthoughOneHasJustCome(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		all := clients(t, srv, 4)
		entries := returned(members(t, all[:3], 3))
		look := srv.On(fault.Match{Client: "c3", Op: fault.OpExists, Path: readyPath}, fault.Hold())
		next := enter(t, newDouble(t, all[3], path, 3))
		require.NoError(t, look.Wait(testzk.Context(t)))
		returned(leaveAll(t, entries))
		look.Release()
		settle()
		next.waits()
		returned(append(members(t, all[:2], 3), next))
	})
}

// A member loses its session and comes again when the others leave. It comes late, and the others go on to the next
// round.
func TestMemberThatComesAgainDoesNotWaitForTheNextRound(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		all := clients(t, srv, 4)
		entries := returned(members(t, all[:3], 3))
		slow := srv.On(fault.Match{Op: fault.OpMulti, Path: path + "/*"}, fault.Hold()) // the last deletion
		leaving := leaveAll(t, entries)
		require.NoError(t, slow.Wait(testzk.Context(t)))
		late := enter(t, newDouble(t, all[3], path, 3)).returns()
		slow.Release()
		returned(leaving)
		next := enter(t, newDouble(t, all[0], path, 3))
		settle()
		next.waits()
		leave(t, late).returns()
		next.waits()
		returned(append(members(t, all[1:3], 3), next))
	})
}

// No event but the last member lets a member in.
func TestNothingElseLetsAMemberIn(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		all := clients(t, srv, 3)
		entering := members(t, all[:2], 3)
		settle()
		require.NoError(t, srv.Set(path, []byte("x")))
		for _, name := range childrenOf(t, srv) {
			require.NoError(t, srv.Set(path+"/"+name, []byte("x")))
		}
		for range 10 {
			srv.Client("c0").Drop()
			settle()
		}
		srv.Stop()
		require.NoError(t, srv.Start())
		settle()
		given, cancel := context.WithTimeout(t.Context(), time.Second) // comes and goes
		defer cancel()
		_, err := newDouble(t, all[2], path, 4).Enter(given)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		settle()
		allWait(entering)
		require.Len(t, childrenOf(t, srv), 2)
		returned(append(entering, members(t, all[2:], 3)...))
	})
}

func childrenOf(t testing.TB, srv *zktest.Server) []string {
	t.Helper()
	names, err := srv.Children(path)
	require.NoError(t, err)
	return names
}

// One member learns that the barrier is open when two have left already.
func TestMemberThatWakesLateEnters(t *testing.T) {
	for name, hold := range map[string]func(c *zktest.Client) (release func()){
		"the event is late": func(c *zktest.Client) func() {
			c.HoldEvents()
			return c.ReleaseEvents
		},
		"without a connection": func(c *zktest.Client) func() {
			c.Cut()
			return c.Heal
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, func(t *testing.T, srv *zktest.Server) {
				all := clients(t, srv, 5)
				late := enter(t, newDouble(t, all[0], path, 5))
				settle()
				release := hold(srv.Client("c0"))
				leaving := leaveAll(t, returned(members(t, all[1:], 5)))
				settle()
				late.waits()
				allWait(leaving)
				release()
				leaving = append(leaving, leave(t, late.returns()))
				returned(leaving)
				require.Equal(t, "/barrier container\n", srv.Tree())
			})
		})
	}
}

// The others have all given up when the member learns that the barrier is open.
func TestMemberThatWakesWhenTheOthersHaveGoneEnters(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		all := clients(t, srv, 3)
		late := enter(t, newDouble(t, all[0], path, 3))
		settle()
		srv.Client("c0").Cut()
		given, cancel := context.WithCancel(t.Context())
		entries := returned(members(t, all[1:], 3))
		cancel()
		for _, e := range entries {
			require.ErrorIs(t, e.Leave(given), context.Canceled)
		}
		time.Sleep(500 * time.Millisecond)
		require.Len(t, childrenOf(t, srv), 2, "the late member, and ready")
		late.waits()
		srv.Client("c0").Reset() // what was sent to it is lost
		srv.Client("c0").Heal()
		leave(t, late.returns()).returns()
		require.Equal(t, "/barrier container\n", srv.Tree())
	})
}

// kazoo's members delete the node ready when the first one leaves.
func TestMemberEntersAlthoughTheReadyNodeIsGone(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		all := clients(t, srv, 3)
		late := enter(t, newDouble(t, all[0], path, 3))
		settle()
		srv.Client("c0").HoldEvents()
		entries := returned(members(t, all[1:], 3))
		require.NoError(t, srv.Delete(readyPath))
		leave(t, entries[0])
		leave(t, entries[1]) // one of the two deletes its node
		time.Sleep(500 * time.Millisecond)
		srv.Client("c0").ReleaseEvents()
		late.returns()
	})
}

func TestEnterThatEndsLeavesNothing(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		c := client(t, srv, "a")
		d := newDouble(t, c, path, 2)
		for _, at := range []fault.Match{
			{Op: fault.OpCreate, Path: path}, {Op: fault.OpMulti, Path: path}, {Op: fault.OpGetData},
			{Op: fault.OpExists}, {Op: fault.OpGetChildren2},
		} {
			held := srv.On(at, fault.Hold())
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := d.Enter(ctx)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.NotContains(t, err.Error(), "members", "it has not listed any")
			held.Release()
			srv.ResetFaults()
			settle()
			require.NotContains(t, srv.Tree(), "ephemeral", "%v", at)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := d.Enter(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		settle()
		require.Equal(t, "/barrier container\n", srv.Tree())
	})
}

func TestErrorOfEnterHasTheNumberOfMembers(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		all := clients(t, srv, 3)
		waiting := members(t, all[:1], 3)
		settle()
		second := enter(t, newDouble(t, all[1], path, 3))
		settle()
		second.cancel()
		require.EqualError(t, second.fails(context.Canceled),
			"enter double barrier /barrier: had seen 2 of 3 members: context canceled")
		waiting[0].cancel()
		require.EqualError(t, waiting[0].fails(context.Canceled),
			"enter double barrier /barrier: had seen 1 of 3 members: context canceled", "the second came later")
	})
}

// The node of a member that has given up is not deleted yet. It must not be counted beside that of
// the next attempt.
func TestNextAttemptIsNotCountedTwice(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		d := newDouble(t, client(t, srv, "a"), path, 2)
		first := enter(t, d)
		settle()
		srv.On(fault.Match{Op: fault.OpDelete, Times: fault.Always}, fault.Hold())
		first.cancel()
		first.fails(context.Canceled)
		second := enter(t, d)
		time.Sleep(time.Second)
		second.waits()
		require.Len(t, childrenOf(t, srv), 1)
		srv.ResetFaults()
		settle()
		second.waits()
		require.Len(t, childrenOf(t, srv), 1)
		enter(t, d)
		second.returns()
	})
}

// The same, after a create whose answer was lost.
func TestNextAttemptIsNotCountedTwiceAfterALostAnswer(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		d := newDouble(t, client(t, srv, "a", framework.WithRetry(retry.Never())), path, 2)
		require.NoError(t, srv.Create(path, nil))
		srv.On(fault.Match{Op: fault.OpCreate}, fault.DropAfter())
		_, err := d.Enter(t.Context())
		require.Equal(t, framework.Unknown, framework.OutcomeOf(err))
		srv.On(fault.Match{Op: fault.OpDelete, Times: fault.Always}, fault.Hold())
		second := begin(t, func(ctx context.Context) (e *barrier.Entry, err error) {
			for e, err = d.Enter(ctx); framework.IsTransient(err); e, err = d.Enter(ctx) {
				time.Sleep(time.Millisecond)
			}
			return e, err
		})
		time.Sleep(time.Second)
		second.waits()
		require.Len(t, childrenOf(t, srv), 1)
		srv.ResetFaults()
		settle()
		second.waits()
		require.Len(t, childrenOf(t, srv), 1)
	})
}

// The answers to the requests of a member are lost, one after the other.
func TestLostAnswersToAMember(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		all := clients(t, srv, 2)
		for skip := range 12 {
			for _, action := range []fault.Action{fault.DropBefore(), fault.DropAfter()} {
				srv.On(fault.Match{Client: "c0", Path: path, Skip: skip}, action)
				entries := returned(members(t, all, 2))
				returned([]*call[struct{}]{leave(t, entries[0]), leave(t, entries[1])})
				require.Equal(t, "/barrier container\n", srv.Tree())
				srv.ResetFaults()
			}
		}
	})
}

func TestEntryEndsWithItsSession(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		all := clients(t, srv, 3)
		entries := returned(members(t, all, 3))
		expire(t, srv, "c0")
		<-entries[0].Done()
		require.ErrorIs(t, entries[0].Err(), framework.ErrSessionLost)
		require.ErrorIs(t, entries[0].Leave(t.Context()), framework.ErrSessionLost)
		require.NoError(t, entries[1].Err())
		require.NoError(t, all[1].Close())
		<-entries[1].Done()
		require.ErrorIs(t, entries[1].Err(), framework.ErrClosed)
		require.ErrorIs(t, entries[1].Leave(t.Context()), framework.ErrClosed)
		leave(t, entries[2]).returns()
		require.Equal(t, "/barrier container\n", srv.Tree())
		require.ErrorIs(t, entries[2].Err(), barrier.ErrLeft)
	})
}

func TestEntryEndsWithItsNode(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		e, err := newDouble(t, client(t, srv, "a"), path, 1).Enter(t.Context())
		require.NoError(t, err)
		require.NoError(t, srv.Delete(path+"/"+regexp.MustCompile(`[0-9a-f-]{36}`).FindString(srv.Tree())))
		<-e.Done()
		require.ErrorIs(t, e.Err(), barrier.ErrNodeDeleted)
		require.ErrorIs(t, e.Leave(t.Context()), barrier.ErrNodeDeleted)
	})
}

func TestMemberWhoseNodeIsDeletedWhileItWaits(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		e := enter(t, newDouble(t, client(t, srv, "a"), path, 2))
		settle()
		require.NoError(t, srv.Delete(path+"/"+childrenOf(t, srv)[0]))
		e.fails(barrier.ErrNodeDeleted)
	})
}

func TestMemberWhoseSessionIsLostWhileItWaits(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		e := enter(t, newDouble(t, client(t, srv, "a"), path, 2))
		settle()
		expire(t, srv, "a")
		e.fails(framework.ErrSessionLost)
	})
}

// The members wait in Leave for a member that is inside, also if it dies there.
func TestMemberThatDiesInsideIsNotWaitedForWithoutAnEnd(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		for dies := range 4 {
			all := clients(t, srv, 4)
			entries := returned(members(t, all, 4))
			srv.Client(fmt.Sprint("c", dies)).Cut()
			var leaving []*call[struct{}]
			for i, e := range entries {
				if i != dies {
					leaving = append(leaving, leave(t, e))
				}
			}
			settle()
			allWait(leaving)
			returned(leaving)
			require.Equal(t, "/barrier container\n", srv.Tree())
			srv.Client(fmt.Sprint("c", dies)).Heal()
		}
	})
}

// A Leave that ends with its context does not loop, and takes its node away.
func TestLeaveThatTimesOut(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		all := clients(t, srv, 3)
		entries := returned(members(t, all, 3))
		for left, e := range entries[:2] {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			begun := time.Now()
			err := e.Leave(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorContains(t, err, fmt.Sprintf("had seen %d other members inside: ", 2-left))
			require.Less(t, time.Since(begun), 2*time.Second)
			cancel()
			require.ErrorIs(t, e.Err(), barrier.ErrLeft)
		}
		settle()
		require.Len(t, childrenOf(t, srv), 2, "the third member, and ready")
		again := leave(t, entries[0])
		settle()
		again.waits()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, entries[2].Leave(ended), context.Canceled)
		settle()
		again.returns()
		require.Equal(t, "/barrier container\n", srv.Tree())
	})
}

// All members have crashed inside. The node that they have left lets nothing in.
func TestReadyNodeOfACrashedRoundLetsNothingIn(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		all := clients(t, srv, 4)
		returned(members(t, all[:2], 2))
		expire(t, srv, "c0")
		expire(t, srv, "c1")
		settle()
		require.Equal(t, []string{"ready"}, childrenOf(t, srv))
		first := enter(t, newDouble(t, all[2], path, 2))
		settle()
		first.waits()
		entries := returned([]*call[*barrier.Entry]{first, enter(t, newDouble(t, all[3], path, 2))})
		returned([]*call[struct{}]{leave(t, entries[0]), leave(t, entries[1])})
		require.Equal(t, "/barrier container\n", srv.Tree())
	})
}

// A member dies between its arrival and that of the last one.
func TestMemberThatDiesBeforeTheBarrierOpensIsNotCounted(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		all := clients(t, srv, 4)
		entering := members(t, all[:2], 3)
		settle()
		open := srv.On(fault.Match{Client: "c2", Op: fault.OpMulti}, fault.Hold())
		last := enter(t, newDouble(t, all[2], path, 3)) // sees three
		require.NoError(t, open.Wait(testzk.Context(t)))
		expire(t, srv, "c0")
		open.Release()
		entering[0].fails(framework.ErrSessionLost)
		settle()
		last.waits()
		entering[1].waits()
		returned([]*call[*barrier.Entry]{last, entering[1], enter(t, newDouble(t, all[3], path, 3))})
	})
}

// The last member dies before it opens the barrier.
func TestLastMemberThatDiesIsReplaced(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		all := clients(t, srv, 4)
		entering := members(t, all[:2], 3)
		settle()
		held := srv.On(fault.Match{Client: "c2", Op: fault.OpGetChildren2}, fault.Hold())
		last := enter(t, newDouble(t, all[2], path, 3))
		require.NoError(t, held.Wait(testzk.Context(t)))
		srv.Client("c2").Cut()
		last.fails(framework.ErrSessionLost)
		outage()
		entering[0].waits()
		returned(append(entering, enter(t, newDouble(t, all[3], path, 3))))
	})
}

// A fast member enters the next round while a slow one still leaves the first.
func TestFastMemberEntersTheNextRound(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		all := clients(t, srv, 3)
		entries := returned(members(t, all, 3))
		slow := notLowest(t, srv, entries)
		srv.Client(fmt.Sprint("c", slow)).HoldEvents()
		leaving := leaveAll(t, entries)
		var next []*call[*barrier.Entry]
		for i := range entries {
			if i != slow {
				leaving[i].returns()
				next = append(next, enter(t, newDouble(t, all[i], path, 3)))
			}
		}
		settle()
		srv.Client(fmt.Sprint("c", slow)).ReleaseEvents()
		leaving[slow].returns()
		returned(append(next, enter(t, newDouble(t, all[slow], path, 3))))
	})
}

// notLowest returns the index of a member that is not the lowest.
func notLowest(t *testing.T, srv *zktest.Server, entries []*barrier.Entry) int {
	t.Helper()
	names := childrenOf(t, srv)
	lowest := names[0]
	for _, name := range names {
		lowest = min(lowest, name)
	}
	for i := range entries {
		line := lowest + " "
		tree := srv.Tree()
		at := strings.Index(tree, line)
		if !strings.Contains(tree[at:at+strings.Index(tree[at:], "\n")], fmt.Sprint("of c", i)) {
			return i
		}
	}
	require.Fail(t, "all are the lowest")
	return 0
}

// The server of a member that leaves is behind. It does not know of a member that has entered before
// Leave was called.
func TestLeaveKnowsMembersThatAreInside(t *testing.T) {
	for _, n := range []int{1, 2} {
		virtually(t, func(t *testing.T, srv *zktest.Server) {
			follower := srv.Follower(0)
			dialer := framework.WithDialer(srv.Client("behind").DialContext)
			behind := testzk.Connected(t, follower.MemAddr(), dialer)
			inside := returned(members(t, append(clients(t, srv, n-1), behind), n))
			follower.SetLag(time.Second)
			late := enter(t, newDouble(t, client(t, srv, "late"), path, n)).returns()
			leaving := leaveAll(t, inside)
			settle()
			require.NoError(t, late.Err())
			allWait(leaving)
			leave(t, late).returns()
			returned(leaving)
			settle()
			require.Empty(t, childrenOf(t, srv))
		})
	}
}

// Another client writes the node ready while a member replaces or deletes it.
func TestReadyNodeIsWrittenMeanwhile(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.Create(path, nil))
		require.NoError(t, srv.Create(readyPath, nil)) // all members of the last round have crashed
		meanwhile := func() {
			held := srv.On(fault.Match{Client: "a", Op: fault.OpMulti}, fault.Hold())
			require.NoError(t, held.Wait(t.Context()))
			require.NoError(t, srv.Set(readyPath, []byte("x")))
			held.Release()
		}
		entering := enter(t, newDouble(t, client(t, srv, "a"), path, 1))
		meanwhile()
		leaving := leave(t, entering.returns())
		meanwhile()
		leaving.returns()
		require.Equal(t, "/barrier\n", srv.Tree())
	})
}

// Two members replace the node ready of a crashed round. The second one finds that it is replaced.
func TestOldReadyNodeIsReplacedOnce(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.Create(path, nil))
		require.NoError(t, srv.Create(readyPath, nil))
		all := clients(t, srv, 2)
		var entering []*call[*barrier.Entry]
		var held []*fault.Rule
		for i, c := range all { // each opens the barrier alone
			own := fault.Match{Client: fmt.Sprint("c", i), Op: fault.OpMulti, Path: path + "/*"} // no sync
			held = append(held, srv.On(own, fault.Hold()))
			entering = append(entering, enter(t, newDouble(t, c, path, 1)))
		}
		for _, h := range held {
			require.NoError(t, h.Wait(t.Context()))
		}
		held[0].Release()
		first := entering[0].returns()
		stat := statOf(t, all[0], readyPath)
		held[1].Release()
		second := entering[1].returns()
		require.Equal(t, stat.Czxid, statOf(t, all[0], readyPath).Czxid)
		returned([]*call[struct{}]{leave(t, first), leave(t, second)})
		require.Equal(t, "/barrier\n", srv.Tree())
	})
}

func statOf(t *testing.T, c *framework.Client, path string) *zk.Stat {
	t.Helper()
	stat, err := c.Exists(t.Context(), path)
	require.NoError(t, err)
	return stat
}

// A node ready of a crashed round costs each member a read, and not one for each other member.
func TestCostOfAnOldReadyNode(t *testing.T) {
	cost := func(old bool) (total int) {
		virtually(t, func(t *testing.T, srv *zktest.Server) {
			const n = 30
			require.NoError(t, srv.Create(path, nil))
			if old {
				require.NoError(t, srv.Create(readyPath, nil))
			}
			var entering []*call[*barrier.Entry]
			for _, c := range clients(t, srv, n) {
				entering = append(entering, enter(t, newDouble(t, c, path, n)))
			}
			srv.ResetCounts()
			returned(entering)
			total = srv.Requests().Total()
		})
		return total
	}
	require.Less(t, cost(true), 2*cost(false))
}

func TestOldReadyNodeOnServersWithoutMultiRead(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		refused := srv.On(fault.Match{Op: fault.OpMultiRead, Times: fault.Always}, fault.Fail(zktest.Unimplemented))
		require.NoError(t, srv.Create(path, nil))
		require.NoError(t, srv.Create(readyPath, nil))
		all := clients(t, srv, 3)
		first := enter(t, newDouble(t, all[0], path, 2))
		settle()
		first.waits()
		inside := []*barrier.Entry{enter(t, newDouble(t, all[1], path, 2)).returns(), first.returns()}
		inside = append(inside, enter(t, newDouble(t, all[2], path, 2)).returns()) // the round is in progress
		require.Positive(t, refused.Hits())
		leaving := leaveAll(t, inside)
		returned(leaving)
	})
}

// The lowest member dies while it leaves, and the other one is slow to delete the node ready. The next
// round has opened meanwhile.
func TestSlowMemberDoesNotDeleteReadyOfTheNextRound(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		all := clients(t, srv, 2)
		inside := returned(members(t, all, 2))
		var held []*fault.Rule
		var leaving []*call[struct{}]
		for i, e := range inside {
			own := fault.Match{Client: fmt.Sprint("c", i), Op: fault.OpMulti, Path: path + "/*"} // no sync
			held = append(held, srv.On(own, fault.Hold()))
			leaving = append(leaving, leave(t, e))
		}
		time.Sleep(100 * time.Millisecond)
		lowest, other := 0, 1
		if held[1].Hits() > 0 {
			lowest, other = 1, 0
		}
		expire(t, srv, fmt.Sprint("c", lowest))
		require.NoError(t, held[other].Wait(t.Context()))
		require.NoError(t, srv.Delete(readyPath))
		require.NoError(t, srv.Create(readyPath, nil))
		held[other].Release()
		leaving[other].returns()
		require.True(t, srv.Exists(readyPath))
	})
}

// An entry that is lost logs what a lost hold of a lock logs, once. One that has left logs nothing.
func TestLogOfAnEntry(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		core, logs := observer.New(zap.InfoLevel)
		log := framework.WithLogger(zap.New(core))
		enter := func(c *framework.Client) *barrier.Entry {
			e, err := newDouble(t, c, path, 1).Enter(t.Context())
			require.NoError(t, err)
			return e
		}
		c := client(t, srv, "a", log)
		require.NoError(t, enter(c).Leave(t.Context()))
		ended := func() []observer.LoggedEntry {
			synctest.Wait() // the log is written
			return logs.FilterMessage("entry ended").All()
		}
		require.Empty(t, ended())

		deleted := enter(c)
		node := path + "/" + slices.DeleteFunc(childrenOf(t, srv), func(name string) bool { return name == "ready" })[0]
		session := srv.Client("a").Sessions()[0].ID
		require.NoError(t, srv.Delete(node))
		<-deleted.Done()
		require.ErrorIs(t, deleted.Leave(t.Context()), barrier.ErrNodeDeleted)
		lost := enter(c)
		expire(t, srv, "a")
		<-lost.Done()
		closed := enter(c)
		require.NoError(t, c.Close())
		<-closed.Done()

		entries := ended()
		require.Len(t, entries, 3)
		for i, level := range []zapcore.Level{zap.WarnLevel, zap.WarnLevel, zap.InfoLevel} {
			require.Equal(t, level, entries[i].Level)
			require.Equal(t, "docent.double-barrier", entries[i].LoggerName)
			require.Contains(t, entries[i].ContextMap(), "error")
		}
		require.Equal(t, node, entries[0].ContextMap()["path"])
		require.Equal(t, fmt.Sprintf("%#x", uint64(session)), entries[0].ContextMap()["session"])
	})
}
