package differential

import (
	"fmt"
	"slices"
	"testing"

	"github.com/docent-zk/docent/internal/rawzk"
)

func TestSessions(t *testing.T) {
	compare(t, group{scenarios: []scenario{
		ephemeralsGoInOneTransaction,
		ephemeralsGoWithTheirEvents,
		closerSeesItsOwnEvents,
		closerSeesItsOwnEventsOfMany,
		takenOverEphemeralSurvives,
		touchedEphemeralStillGoes,
		closeWithoutEphemeralsIsSilent,
		closeEndsOnlyItsOwnSession,
		ephemeralHasNoChildren,
		ephemeralMadeInMultiGoes,
	}})
}

// sortFrom sorts the lines from the given one on, for what servers send in any order.
func (s *script) sortFrom(line int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.lines[line:])
}

// ephemeralsGoInOneTransaction compares the parent's pzxid and cversion.
func ephemeralsGoInOneTransaction(s *script) {
	a, b := s.connect("a"), s.connect("b")
	for i := range 5 {
		b.do(rawzk.Create(s.path(fmt.Sprint("dir", i)), nil, rawzk.Open(), rawzk.Persistent))
		for j := range i {
			a.do(rawzk.Create(s.path(fmt.Sprintf("dir%d/e%d", i, j)), nil, rawzk.Open(), rawzk.Ephemeral))
		}
	}
	a.close()
	for i := range 5 {
		b.do(rawzk.GetChildren2(s.path(fmt.Sprint("dir", i)), false))
	}
	b.do(rawzk.Exists(s.path(""), false))
}

func ephemeralsGoWithTheirEvents(s *script) {
	a, b := s.connect("a"), s.connect("b")
	b.do(rawzk.GetChildren(s.path(""), true))
	for i := range 4 {
		a.do(rawzk.Create(s.path(fmt.Sprint("e", i)), nil, rawzk.Open(), rawzk.Ephemeral))
	}
	b.barrier()
	for i := range 4 {
		b.do(rawzk.GetData(s.path(fmt.Sprint("e", i)), true))
	}
	b.do(rawzk.AddWatch(s.path(""), 1))
	b.do(rawzk.GetChildren(s.path(""), true))
	a.close()
	line := len(s.lines)
	b.barrier()
	s.sortFrom(line)
	b.do(rawzk.Exists(s.path(""), false))
}

func closerSeesItsOwnEvents(s *script) {
	a := s.connect("a")
	a.do(rawzk.Create(s.path("e"), nil, rawzk.Open(), rawzk.Ephemeral))
	a.do(rawzk.GetData(s.path("e"), true))
	a.do(rawzk.GetChildren(s.path(""), true))
	a.do(rawzk.GetChildren(s.path("e"), true))
	a.close()
}

func closerSeesItsOwnEventsOfMany(s *script) {
	a := s.connect("a")
	for i := range 4 {
		a.do(rawzk.Create(s.path(fmt.Sprint("e", i)), nil, rawzk.Open(), rawzk.Ephemeral))
		a.do(rawzk.GetData(s.path(fmt.Sprint("e", i)), true))
	}
	a.do(rawzk.AddWatch(s.path("e0"), 0))
	a.expect(99, rawzk.CloseSession())
	line := len(s.lines)
	a.sendFrame(rawzk.Request(99, rawzk.CloseSession()))
	for range 4 {
		a.read()
	}
	s.sortFrom(line)
	a.end()
}

func takenOverEphemeralSurvives(s *script) {
	a, b, c := s.connect("a"), s.connect("b"), s.connect("c")
	x := s.path("x")
	a.do(rawzk.Create(x, []byte("a"), rawzk.Open(), rawzk.Ephemeral))
	b.do(rawzk.Delete(x, -1))
	b.do(rawzk.Create(x, []byte("b"), rawzk.Open(), rawzk.Ephemeral))
	a.do(rawzk.GetEphemerals("/"))
	a.close()
	c.do(rawzk.GetData(x, true))
	b.do(rawzk.GetEphemerals("/"))
	b.do(rawzk.Delete(x, -1))
	c.barrier()
	c.do(rawzk.Create(x, []byte("c"), rawzk.Open(), rawzk.Persistent))
	b.close()
	c.do(rawzk.GetData(x, false))
}

func touchedEphemeralStillGoes(s *script) {
	a, b := s.connect("a"), s.connect("b")
	x := s.path("x")
	a.do(rawzk.Create(x, []byte("a"), rawzk.Open(), rawzk.Ephemeral))
	b.do(rawzk.SetData(x, []byte("b"), 0))
	b.do(rawzk.SetACL(x, []rawzk.ACL{{Perms: 1, Scheme: "world", ID: "anyone"}}, 0))
	b.do(rawzk.GetData(x, true))
	b.do(rawzk.GetChildren(x, true))
	a.close()
	b.barrier()
	b.do(rawzk.Exists(x, false))
}

func closeWithoutEphemeralsIsSilent(s *script) {
	a, b := s.connect("a"), s.connect("b")
	b.do(rawzk.AddWatch(s.path(""), 1))
	b.do(rawzk.AddWatch("/", 0))
	a.do(rawzk.Create(s.path("x"), nil, rawzk.Open(), rawzk.Persistent))
	b.barrier()
	a.close()
	b.barrier()
	b.do(rawzk.Exists(s.path(""), false))
}

func closeEndsOnlyItsOwnSession(s *script) {
	a, b := s.connect("a"), s.connect("b")
	a.do(rawzk.Create(s.path("a"), nil, rawzk.Open(), rawzk.Ephemeral))
	b.do(rawzk.Create(s.path("b"), nil, rawzk.Open(), rawzk.Ephemeral))
	a.do(rawzk.GetEphemerals("/"))
	a.do(rawzk.GetEphemerals(s.path("b")))
	a.do(rawzk.GetEphemerals(s.path("")[:4]))
	a.close()
	b.do(rawzk.GetEphemerals(""))
	b.do(rawzk.GetChildren2(s.path(""), false))
	b.close()
}

func ephemeralHasNoChildren(s *script) {
	a := s.connect("a")
	a.do(rawzk.Create(s.path("e"), nil, rawzk.Open(), rawzk.Ephemeral))
	for flags := range int32(5) {
		a.do(rawzk.Create(s.path("e/x"), nil, rawzk.Open(), flags))
	}
	a.do(rawzk.Multi(rawzk.Delete(s.path("e"), -1),
		rawzk.Create(s.path("e"), nil, rawzk.Open(), rawzk.Persistent),
		rawzk.Create(s.path("e/x"), nil, rawzk.Open(), rawzk.EphemeralSequential)))
	a.do(rawzk.GetEphemerals("/"))
	a.close()
	b := s.connect("b")
	b.do(rawzk.GetChildren2(s.path("e"), false))
}

func ephemeralMadeInMultiGoes(s *script) {
	a, b := s.connect("a"), s.connect("b")
	a.do(rawzk.Multi(
		rawzk.Create(s.path("gone"), nil, rawzk.Open(), rawzk.Ephemeral),
		rawzk.Delete(s.path("gone"), 0),
		rawzk.Create(s.path("e"), nil, rawzk.Open(), rawzk.Ephemeral),
		rawzk.SetData(s.path("e"), []byte("1"), 0)))
	a.do(rawzk.Multi(
		rawzk.Create(s.path("never"), nil, rawzk.Open(), rawzk.Ephemeral),
		rawzk.Check(s.path("none"), -1)))
	a.do(rawzk.GetEphemerals("/"))
	b.do(rawzk.GetChildren(s.path(""), true))
	a.close()
	b.barrier()
	b.do(rawzk.GetChildren2(s.path(""), false))
}
