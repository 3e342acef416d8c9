package differential

import (
	"testing"

	"github.com/docent-zk/docent/internal/rawzk"
	"github.com/docent-zk/docent/zktest"
)

// Servers of different versions must have different transcripts. Otherwise the suite compares
// nothing.
func TestHarnessSeesTheDifferenceOfVersions(t *testing.T) {
	t.Parallel()
	c := config{}.withDefaults()
	old, same, other := startFake(t, c, zktest.V38), startFake(t, c, zktest.V38), startFake(t, c, zktest.V39)
	for _, f := range []scenario{zxidOfAnEvent, create2InMulti, existsWithoutPermission} {
		want := record(old, group{}, f)
		if difference := diff(want, record(same, group{}, f)); difference != "" {
			t.Errorf("%s: equal servers differ:\n%s", f.name(), difference)
		}
		if diff(want, record(other, group{}, f)) == "" {
			t.Errorf("%s: different servers look equal", f.name())
		}
	}
}

func zxidOfAnEvent(s *script) {
	a := s.connect("a")
	a.do(rawzk.Exists(s.path("x"), true))
	a.do(rawzk.Create(s.path("x"), nil, rawzk.Open(), rawzk.Ephemeral))
	a.close()
}

func create2InMulti(s *script) {
	a := s.connect("a")
	a.do(rawzk.Multi(rawzk.Create2(s.path("x"), nil, rawzk.Open(), rawzk.Ephemeral)))
	a.close()
}

func existsWithoutPermission(s *script) {
	a := s.connect("a")
	nobody := []rawzk.ACL{{Perms: 31, Scheme: "digest", ID: "nobody:hash"}}
	a.do(rawzk.Create(s.path("x"), nil, nobody, rawzk.Persistent))
	a.do(rawzk.Exists(s.path("x"), false))
	a.close()
}
