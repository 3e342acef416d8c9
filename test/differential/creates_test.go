package differential

import (
	"fmt"
	"math"

	"github.com/docent-zk/docent/internal/rawzk"
)

// createFlags sends every kind of create with every flag, and reads the result.
func createFlags(s *script) {
	a := s.connect("a")
	for flags := int32(-1); flags <= 8; flags++ {
		for i := range 4 {
			dir := s.path(fmt.Sprintf("f%d-%d", flags, i))
			a.do(node(dir))
			for _, ttl := range []int64{0, hour} {
				a.do(fourCreates(dir+"/x", []byte("d"), rawzk.Open(), flags, ttl)[i])
			}
			a.each(rawzk.GetChildren2(dir, false), rawzk.Exists(dir+"/x", false), node(dir+"/x/kid"),
				rawzk.GetEphemerals(dir))
		}
	}
}

// createFlagsInMulti sends the same requests as parts of a transaction, behind a part that
// succeeds.
func createFlagsInMulti(s *script) {
	a := s.connect("a")
	for flags := int32(-1); flags <= 8; flags++ {
		for i := range 4 {
			dir := s.path(fmt.Sprintf("f%d-%d", flags, i))
			create := fourCreates(dir+"/x", []byte("d"), rawzk.Open(), flags, hour)[i]
			a.each(node(dir), rawzk.Multi(set(dir), create), rawzk.GetChildren2(dir, false),
				rawzk.Exists(dir+"/x", false), node(dir+"/x/kid"), rawzk.GetEphemerals(dir))
		}
	}
}

// timesToLive uses times to live from one to the largest that fits. A negative one with a flag that
// is not for TTL is left out, because it passes the real server's checks and then ends the server.
func timesToLive(s *script) {
	a := s.connect("a")
	for i, ttl := range []int64{
		math.MinInt64, -1, 0, 1, 1000, 1<<40 - 2, 1<<40 - 1, 1 << 40, 1<<40 + 1, 1 << 41, 1 << 48, math.MaxInt64,
	} {
		for flags := rawzk.Container; flags <= rawzk.PersistentSequentTTL; flags++ {
			if ttl < 0 && flags < rawzk.TTL {
				continue
			}
			x := s.path(fmt.Sprintf("x%d-%d", i, flags))
			a.each(rawzk.CreateTTL(x, nil, rawzk.Open(), flags, ttl), rawzk.Exists(x, false),
				rawzk.Multi(rawzk.CreateTTL(x+"m", nil, rawzk.Open(), flags, ttl)), rawzk.Exists(x+"m", false))
		}
	}
	a.do(rawzk.GetChildren(s.root(), false))
}

// createChecksInOrder sends creates with several mistakes, to compare which one the error names.
func createChecksInOrder(s *script) {
	a := s.connect("a")
	a.each(node(s.path("fine")), node(s.path("fine/there")), node(s.path("locked")), node(s.path("locked/there")),
		rawzk.SetACL(s.path("locked"), world(permRead), -1),
		rawzk.Create(s.path("mortal"), nil, rawzk.Open(), rawzk.Ephemeral))
	invalid := []rawzk.ACL{{Perms: permAll, Scheme: "nonsense", ID: "x"}}
	for _, parent := range []string{"fine", "locked", "mortal", "none", "fine/..", "fine/"} {
		for _, name := range []string{"there", "fresh", "..", "", "bad\x01", "nul\x00", "a//b"} {
			for _, acl := range [][]rawzk.ACL{rawzk.Open(), {}, nil, invalid} {
				for _, flags := range []int32{rawzk.Persistent, rawzk.Ephemeral, rawzk.TTL, 99} {
					a.do(rawzk.Create(s.path(parent+"/"+name), nil, acl, flags))
				}
			}
			a.each(del(s.path(parent + "/fresh")))
		}
	}
	for _, path := range []string{"", "relative", "/", "//", "re/lative", "nul\x00"} {
		for _, acl := range [][]rawzk.ACL{rawzk.Open(), {}, invalid} {
			for _, flags := range []int32{rawzk.Ephemeral, rawzk.TTL, 99} {
				a.each(rawzk.Create(path, nil, acl, flags), rawzk.CreateTTL(path, nil, acl, flags, 0))
			}
		}
	}
}

// deleteChecksInOrder sends deletes with several mistakes, to compare which one the error names.
func deleteChecksInOrder(s *script) {
	a := s.connect("a")
	for _, parent := range []string{"fine", "locked"} {
		a.each(node(s.path(parent)), node(s.path(parent+"/full")), node(s.path(parent+"/full/kid")))
		a.do(rawzk.Create(s.path(parent+"/sealed"), nil, world(permRead), rawzk.Persistent))
	}
	a.do(rawzk.SetACL(s.path("locked"), world(permAll&^permDelete), -1))
	for _, parent := range []string{"fine", "locked", "none", "fine/..", "fine/", "fine/full/none"} {
		for _, name := range []string{"full", "none", "", "..", "bad\x01", "nul\x00"} {
			for _, version := range []int32{7, -2, -1} {
				x := s.path(parent + "/" + name)
				a.each(rawzk.Delete(x, version), rawzk.Multi(rawzk.Delete(x, version)))
			}
		}
	}
	for _, path := range []string{"/", "", "//", "/zookeeper", "/zookeeper/", "/zookeeper/none", "relative"} {
		a.each(rawzk.Delete(path, 7), rawzk.Delete(path, -1))
	}
	for _, parent := range []string{"fine", "locked"} {
		a.each(rawzk.Delete(s.path(parent+"/sealed"), 5), rawzk.Delete(s.path(parent+"/sealed"), 0))
	}
}

// changesCheckInOrder sends setData, setACL and check with several mistakes, to compare which one
// the error names.
func changesCheckInOrder(s *script) {
	a := s.connect("a")
	a.each(node(s.path("fine")), node(s.path("sealed")), rawzk.SetACL(s.path("sealed"), world(permCreate), -1))
	invalid := []rawzk.ACL{{Perms: permAll, Scheme: "digest", ID: "nocolon"}}
	for _, name := range []string{"fine", "sealed", "none", "fine/", "fine//x", "fine/..", "bad\x01", "nul\x00"} {
		x := s.path(name)
		for _, version := range []int32{99, -2, -1} {
			a.each(rawzk.SetData(x, nil, version), rawzk.SetACL(x, invalid, version), rawzk.SetACL(x, nil, version),
				rawzk.SetACL(x, []rawzk.ACL{}, version), rawzk.Multi(rawzk.Check(x, version)),
				rawzk.Multi(rawzk.SetData(x, nil, version)))
		}
		a.each(rawzk.SetACL(x, rawzk.Open(), 99), rawzk.GetACL(x), rawzk.SetACL(x, world(permAll), 0), rawzk.GetACL(x))
	}
}

// versionsOfDataAndACL uses odd versions: −1 matches any version, every other number must be equal.
func versionsOfDataAndACL(s *script) {
	a := s.connect("a")
	x := s.path("x")
	a.do(node(x))
	for range 3 {
		for _, v := range append([]int32{2, 3}, oddVersions...) {
			a.each(rawzk.SetData(x, []byte("d"), v), rawzk.SetACL(x, rawzk.Open(), v),
				rawzk.Multi(rawzk.Check(x, v), rawzk.SetData(x, nil, v)))
		}
	}
	for _, v := range append([]int32{2, 3}, oddVersions...) {
		a.each(rawzk.Delete(x, v), node(x))
	}
}
