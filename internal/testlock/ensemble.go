package testlock

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// DisturbEnsemble makes random faults between the servers of an ensemble, and on the connections of
// the clients c0, c1 and so on. Afterwards the servers and the connections are undisturbed.
func DisturbEnsemble(srv *zktest.Server, random *rand.Rand, clients, faults int, sessionTimeout time.Duration) {
	for range faults {
		time.Sleep(time.Duration(random.Int64N(int64(sessionTimeout / 8))))
		c := srv.Client(fmt.Sprintf("c%d", random.IntN(clients)))
		switch random.IntN(8) {
		case 0, 1, 2:
			c.Drop()
		case 3:
			c.CutReplies()
			time.AfterFunc(time.Duration(random.Int64N(int64(sessionTimeout))), c.Heal)
		case 4:
			members := srv.Members()
			bound := sessionTimeout/3 + time.Duration(random.Int64N(int64(sessionTimeout-sessionTimeout/3)))
			members[random.IntN(len(members))].SetSessionTimeouts(time.Second, bound)
		default:
			sim.Disturb(srv, random, sessionTimeout/2)
		}
	}
	sim.Calm(srv)
	srv.ResetFaults()
}
