package differential

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/docent-zk/docent/internal/rawzk"
)

// These are the digests of user:password for u:p and super:test.
const (
	digestOfUP    = "u:Jq7wMyA/w2Vd5WIDAKdu4OIIFEQ="
	digestOfSuper = "super:D/InIHSb7yEEbrWz8b9l71RjZJU="
)

func TestACL(t *testing.T) {
	properties := map[string]string{"DigestAuthenticationProvider.superDigest": digestOfSuper}
	compare(t, group{config: config{properties: properties}, scenarios: []scenario{
		listsThatAreAccepted,
		listsForTheAuthenticated,
		everyPermissionForEveryOp,
		permissionsOfTheParent,
		digestsAreMasked,
		identitiesEndWithTheConnection,
		superMayEverything,
		badCredentialsEndTheConnection,
		oddDigests,
		addressesGrant,
	}})
}

func entry(perms int32, scheme, id string) rawzk.ACL {
	return rawzk.ACL{Perms: perms, Scheme: scheme, ID: id}
}

func manyLists() [][]rawzk.ACL {
	anyone := entry(permAll, "world", "anyone")
	lists := [][]rawzk.ACL{
		nil, {}, {anyone}, {anyone, anyone}, {anyone, entry(permRead, "world", "anyone")},
		{entry(permRead, "world", "anyone"), anyone, entry(permRead, "world", "anyone")},
		{anyone, entry(permAll, "nonsense", "x")}, {entry(permAll, "auth", ""), anyone},
	}
	for _, perms := range []int32{0, 1, 30, 32, 255, -1} {
		lists = append(lists, []rawzk.ACL{entry(perms, "world", "anyone")})
	}
	for _, pair := range [][2]string{
		{"world", ""}, {"world", "someone"}, {"world", "ANYONE"}, {"World", "anyone"}, {"", ""}, {"", "anyone"},
		{"super", ""}, {"super", "x"}, {"auth", ""}, {"auth", "ignored"}, {"auth", "u:p"}, {"sasl", "u"},
		{"x509", "CN=u"}, {"nonsense", "x"}, {"digest", ""}, {"digest", ":"}, {"digest", "u"}, {"digest", "u:"},
		{"digest", "u:h"}, {"digest", ":h"}, {"digest", "a:b:c"}, {"digest", "a:b:"}, {"digest", "::"},
		{"digest", ":a:"}, {"digest", "u: "}, {"digest", digestOfUP},
		{"ip", ""}, {"ip", "10.0.0.1"}, {"ip", "10.0.0.1/32"}, {"ip", "10.0.0.1/0"}, {"ip", "10.0.0.1/33"},
		{"ip", "10.0.0.1/-1"}, {"ip", "10.0.0.1/"}, {"ip", "10.0.0"}, {"ip", "10.0.0.1.2"}, {"ip", "256.0.0.1"},
		{"ip", "10.0.0.0/8"}, {"ip", "localhost"}, {"ip", "1.2.3.4/8/9"}, {"ip", "a.b.c.d"}, {"ip", "/8"},
		{"ip", "10.0.0.1/x"}, {"ip", " 10.0.0.1"}, {"ip", "::1"}, {"ip", "10.0.0.01"}, {"ip", "10..0.1"},
	} {
		lists = append(lists, []rawzk.ACL{entry(permAll, pair[0], pair[1])})
	}
	return lists
}

// listsThatAreAccepted creates nodes and changes lists, without and with credentials, and reads the
// lists.
func listsThatAreAccepted(s *script) {
	plain, known, boss := s.connect("plain"), s.connect("known"), s.connect("boss")
	known.do(rawzk.Auth("digest", []byte("u:p")))
	boss.do(rawzk.Auth("digest", []byte("super:test")))
	for i, list := range manyLists() {
		x := s.path(fmt.Sprint(i))
		for _, c := range []*client{plain, known} {
			y := x + c.name
			c.each(rawzk.Create(x, nil, list, 0), rawzk.GetACL(x))
			boss.do(rawzk.GetACL(x))
			c.each(del(x), node(y), rawzk.SetACL(y, list, -1), rawzk.GetACL(y), rawzk.GetData(y, false))
			boss.do(rawzk.GetACL(y))
			c.each(rawzk.Multi(rawzk.Create(x+"m", nil, list, 0)), del(y), del(x+"m"))
		}
	}
}

// listsForTheAuthenticated uses the scheme "auth", which stands for all credentials of a
// connection.
func listsForTheAuthenticated(s *script) {
	s.sortACLs = true
	a := s.connect("a")
	for i, credentials := range []string{"u:p", "v:q", "u:p", "w", "ip"} {
		x := s.path(fmt.Sprint(i))
		scheme := "digest"
		if credentials == "ip" {
			scheme = "ip"
		}
		a.each(rawzk.Auth(scheme, []byte(credentials)), rawzk.WhoAmI(),
			rawzk.Create(x, nil, []rawzk.ACL{entry(permAll, "auth", "")}, 0), rawzk.GetACL(x),
			rawzk.SetACL(x, []rawzk.ACL{entry(permRead|permAdmin, "auth", "u"), entry(permWrite, "world", "anyone")},
				-1), rawzk.GetACL(x))
		b := s.connect("b")
		b.each(rawzk.GetData(x, false), rawzk.GetACL(x), rawzk.Auth("digest", []byte("v:q")), rawzk.GetData(x, false),
			rawzk.GetACL(x))
		b.close()
	}
}

// everyPermissionForEveryOp sends each request with each of the five permissions and their
// combinations.
func everyPermissionForEveryOp(s *script) {
	a := s.connect("a")
	for perms := int32(0); perms <= permAll+1; perms++ {
		x := s.path(fmt.Sprint(perms))
		s.logf("-- permissions %05b", perms)
		a.each(node(x), node(x+"/old"), rawzk.SetACL(x, world(perms), -1))
		a.each(rawzk.Exists(x, false), rawzk.Exists(x, true), rawzk.GetData(x, false), rawzk.GetData(x, true),
			rawzk.GetACL(x), rawzk.GetChildren(x, false), rawzk.GetChildren2(x, true), rawzk.GetAllChildrenNumber(x),
			rawzk.GetEphemerals(x), rawzk.Sync(x), rawzk.AddWatch(x, 0), rawzk.CheckWatches(x, 3),
			rawzk.RemoveWatches(x, 3), rawzk.MultiRead(rawzk.GetData(x, false), rawzk.GetChildren(x, false)),
			rawzk.Multi(rawzk.Check(x, -1)), set(x), node(x+"/new"),
			rawzk.Create(x+"/", nil, rawzk.Open(), rawzk.EphemeralSequential),
			rawzk.CreateContainer(x+"/c", nil, rawzk.Open(), 4),
			rawzk.CreateTTL(x+"/t", nil, rawzk.Open(), 5, hour), del(x+"/old"),
			rawzk.SetWatches(0, []string{x}, []string{x}, []string{x}), rawzk.SetACL(x, world(perms), -1), del(x))
	}
}

// permissionsOfTheParent sends the requests that need permissions of the parent and not of the
// node.
func permissionsOfTheParent(s *script) {
	a := s.connect("a")
	for perms := int32(0); perms <= permAll; perms++ {
		dir := s.path(fmt.Sprint(perms))
		x := dir + "/x"
		a.each(node(dir), rawzk.Create(x, nil, world(0), 0), rawzk.Create(dir+"/y", nil, rawzk.Open(), 0),
			rawzk.SetACL(dir, world(perms), -1), rawzk.GetData(x, false), set(dir+"/y"), node(dir+"/y/kid"),
			rawzk.GetChildren(dir+"/y", false), rawzk.SetACL(dir+"/y", world(1), -1), del(x), node(x),
			del(dir+"/y/kid"), del(dir+"/y"))
	}
}

// digestsAreMasked reads lists with credentials that may read a list but not change it.
func digestsAreMasked(s *script) {
	owner, other := s.connect("owner"), s.connect("other")
	owner.do(rawzk.Auth("digest", []byte("u:p")))
	for i, others := range []int32{0, permRead, permAdmin, permWrite, permRead | permAdmin} {
		x := s.path(fmt.Sprint(i))
		list := []rawzk.ACL{entry(permAll, "digest", digestOfUP), entry(others, "world", "anyone"),
			entry(permRead, "ip", "10.0.0.0/8"), entry(permRead, "digest", ":x")}
		owner.each(rawzk.Create(x, nil, list, 0), rawzk.GetACL(x))
		other.do(rawzk.GetACL(x))
	}
}

// identitiesEndWithTheConnection shows that credentials belong to the connection and not to the
// session.
func identitiesEndWithTheConnection(s *script) {
	a := s.connect("a")
	x := s.path("x")
	a.each(rawzk.Auth("digest", []byte("u:p")), rawzk.Create(x, nil, []rawzk.ACL{entry(permAll, "auth", "")}, 0),
		rawzk.GetData(x, true), rawzk.WhoAmI())
	b := s.attach("b", a)
	a.end()
	b.each(rawzk.WhoAmI(), rawzk.GetData(x, false), rawzk.Auth("digest", []byte("u:wrong")), rawzk.GetData(x, false),
		rawzk.Auth("digest", []byte("u:p")), rawzk.GetData(x, false), rawzk.WhoAmI())
}

// superMayEverything shows that lists do not restrict the super user, and that all other checks do.
func superMayEverything(s *script) {
	s.sortACLs = true
	a, boss := s.connect("a"), s.connect("boss")
	x := s.path("x")
	boss.each(rawzk.Auth("digest", []byte("super:wrong")), rawzk.WhoAmI())
	a.each(node(x), node(x+"/kid"), rawzk.SetACL(x, world(0), -1), del(x+"/kid"))
	for range 2 {
		boss.each(rawzk.GetData(x, true), rawzk.GetACL(x), set(x), rawzk.GetChildren(x, true), node(x+"/new"),
			del(x+"/new"), rawzk.SetACL(x, world(0), -1), rawzk.SetACL(x, nil, -1),
			rawzk.SetACL(x, []rawzk.ACL{entry(permAll, "auth", "")}, 99),
			rawzk.SetData("/zookeeper/config", []byte("c"), -1), rawzk.GetData("/zookeeper/config", false),
			del("/zookeeper/config"), rawzk.SetData(x, nil, 99), rawzk.Auth("digest", []byte("super:test")),
			rawzk.WhoAmI())
		a.do(set(x))
	}
	boss.each(rawzk.SetACL(x, []rawzk.ACL{entry(permAll, "auth", "")}, -1), rawzk.GetACL(x))
	a.do(rawzk.GetACL(x))
}

// badCredentialsEndTheConnection shows that wrong credentials do not end the session.
func badCredentialsEndTheConnection(s *script) {
	for _, bad := range []rawzk.Op{
		rawzk.Auth("nonsense", []byte("x")), rawzk.Auth("", []byte("x")), rawzk.Auth("world", []byte("anyone")),
		rawzk.Auth("auth", nil), rawzk.Auth("super", []byte("test")), rawzk.Auth("digest", nil),
		rawzk.Auth("DIGEST", []byte("u:p")), rawzk.Auth("sasl", []byte("u")), rawzk.Auth("x509", []byte("u")),
	} {
		a := s.connect("a")
		a.do(bad)
		a.end()
		b := s.attach("b", a)
		b.do(rawzk.WhoAmI())
		b.close()
	}
}

// oddDigests sends unusual credentials. All but null are accepted as digests.
func oddDigests(s *script) {
	a := s.connect("a")
	for _, credentials := range [][]byte{{}, []byte("nocolon"), []byte(":"), []byte("u:"), []byte(":p"),
		[]byte("a:b:c"), {0xff, 0xfe}} {
		a.each(rawzk.Auth("digest", credentials), rawzk.WhoAmI())
	}
	a.each(rawzk.Auth("ip", []byte("1.2.3.4")), rawzk.Auth("ip", nil), rawzk.WhoAmI(), rawzk.Sync("/"))
}

// addressesGrant uses lists of addresses and networks. The address of a client is not in the
// transcript, because it may differ; the results are.
func addressesGrant(s *script) {
	a, quiet := s.connect("a"), s.hidden()
	a.do(node(s.path("x")))
	for bits := 0; bits <= 32; bits++ {
		for _, other := range []int{-1, bits - 1, bits} { // the bit in which the list's address differs
			if other < -1 || other > 31 {
				continue
			}
			x := s.path(fmt.Sprintf("%d-%d", bits, other))
			network := fmt.Sprintf("%s/%d", turnBit(a.host(), other), bits)
			quiet.do(rawzk.Create(x, nil, []rawzk.ACL{entry(permRead, "ip", network)}, 0))
			a.each(rawzk.GetData(x, false), set(x))
		}
	}
	for _, other := range []int{-1, 31, 0} {
		x := s.path(fmt.Sprint(other))
		quiet.do(rawzk.Create(x, nil, []rawzk.ACL{entry(permRead|permAdmin, "ip", turnBit(a.host(), other))}, 0))
		a.each(rawzk.GetData(x, false), set(x), rawzk.SetACL(x, rawzk.Open(), -1))
	}
}

// turnBit inverts a bit of an address, counted from the front. It inverts none if bit is −1.
func turnBit(host string, bit int) string {
	address := netip.MustParseAddr(host).As4()
	if bit >= 0 {
		address[bit/8] ^= 0x80 >> (bit % 8)
	}
	return netip.AddrFrom4(address).String()
}
