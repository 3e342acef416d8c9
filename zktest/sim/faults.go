package sim

import (
	"math/rand/v2"
	"strings"
	"time"

	"github.com/docent-zk/docent/zktest"
)

// Ensemble adds followers to srv. All servers get random lags below 50 ms, the leader too. It returns
// the connection string of all servers in memory, srv first.
func Ensemble(srv *zktest.Server, random *rand.Rand, followers int) (connect string) {
	addrs := []string{srv.MemAddr()}
	for range followers {
		addrs = append(addrs, srv.Follower(upTo(random, 50*time.Millisecond)).MemAddr())
	}
	srv.Leader().SetLag(upTo(random, 50*time.Millisecond))
	return strings.Join(addrs, ",")
}

// Disturb causes one random fault in an ensemble. A fault that lasts ends by itself within longest,
// in virtual time, or at [Calm]. Several may last at once. The faults are:
//
//   - the requests of one server's clients wait on their way to the leader
//   - one server is cut off from the leader, in one direction or in both
//   - one server learns of no changes, as the leader may too
//   - one server restarts
//   - the leader is frozen
//   - the leader is cut off from all others
//
// If longest is more than syncLimit ticks, there are elections. Faults of single clients are
// methods of [zktest.Client]. A session moves between servers when its connections are dropped, or
// when a server does not answer it.
func Disturb(srv *zktest.Server, random *rand.Rand, longest time.Duration) {
	members := srv.Members()
	f, lasts := members[random.IntN(len(members))], upTo(random, longest)
	var undo func()
	switch random.IntN(8) {
	case 0, 1:
		f.HoldRequests()
		undo = f.ReleaseRequests
	case 2:
		f.CutLeader()
		undo = f.Restore
	case 3:
		f.CutToLeader()
		undo = f.Restore
	case 4:
		f.CutFromLeader()
		undo = f.Restore
	case 5:
		srv.FreezeLeader()
		undo = srv.ThawLeader
	case 6:
		srv.IsolateLeader()
		undo = srv.RestoreAll
	default:
		if random.IntN(2) == 0 {
			f.Restart()
			return
		}
		f.Freeze()
		undo = f.Thaw
	}
	time.AfterFunc(lasts, undo)
}

// Calm undoes everything that [Disturb] may have done. A few ticks later there is a leader.
func Calm(srv *zktest.Server) {
	srv.ThawLeader()
	srv.RestoreAll()
	for _, f := range srv.Members() {
		f.Thaw()
		f.ReleaseRequests()
	}
}

func upTo(random *rand.Rand, limit time.Duration) time.Duration {
	return time.Duration(random.Int64N(int64(limit)))
}
