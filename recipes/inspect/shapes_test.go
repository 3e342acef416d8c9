package inspect_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/inspect"
	"github.com/docent-zk/docent/zktest"
)

// A shape is nodes below a path, and what Show says of the path. A line is a name, perhaps with
// directories, then "e" for an ephemeral or "p" for a persistent node, then its data, as in Go.
var shapes = map[string]struct {
	data  string
	nodes []string
	want  string
	roles []string
}{
	"mutex of Curator": {nodes: []string{guid + `lock-0000000003 e "10.0.0.3"`, otherGUID + "lock-0000000001 e"},
		want: "mutex waited-for curator 1+1", roles: []string{"lock 0 holds", "lock 1"}},
	"mutex of go-zookeeper": {nodes: []string{plainGUID + "lock-0000000000 e"}, want: "mutex held go-zookeeper 1+0"},
	"mutex of kazoo": {nodes: []string{hex + "__lock__0000000000 e", otherHex + "__lock__0000000001 e"},
		want: "mutex waited-for kazoo 1+1"},
	"mutex of kazoo with Curator's names": {nodes: []string{hex + "-lock-0000000000 e"}, want: "mutex held kazoo 1+0"},
	"mutexes that may not exclude each other": {
		nodes: []string{hex + "__lock__0000000000 e", guid + "lock-0000000001 e"},
		want:  "mutex waited-for curator kazoo 1+1 !mixed-layouts"},
	"mutex of other names": {nodes: []string{"lock-0000000000 e"}, want: "mutex? held other 1+0"},
	"mutex with other children": {nodes: []string{guid + "lock-0000000000 e", "config p", "x p"},
		want: "mutex held curator 1+0 !foreign-children"},
	"persistent nodes with numbers": {nodes: []string{"block-0000000000 p", "block-0000000001 p"}, want: "unknown?"},
	"short numbers":                 {nodes: []string{guid + "lock-7 p"}, want: "unknown?"},
	"numbers of more than 32 bits":  {nodes: []string{guid + "lock-9999999999 p"}, want: "unknown?"},
	"persistent lock": {nodes: []string{hex + "__lock__0000000000 p", otherHex + "__lock__0000000001 e"},
		want: "mutex abandoned kazoo 1+1 !persistent-node"},
	"late numbers": {nodes: []string{guid + "lock-1500000000 e"}, want: "mutex held curator 1+0 !sequence-near-end"},
	"numbers that do not show the order": {
		nodes: []string{guid + "lock--2147483648 e", otherGUID + "lock-2147483647 e", guid + "lock-2147483646 e"},
		want:  "mutex waited-for curator 1+2 !sequence-near-end",
		roles: []string{"lock 0 holds", "lock 1", "lock 2"}},
	"readers and writers": {nodes: []string{guid + "__READ__0000000001 e", guid + "__WRIT__0000000002 e",
		guid + "__READ__0000000000 e", guid + "__READ__0000000003 e", guid + "__WRIT__0000000004 e"},
		want:  "rwlock waited-for curator 2+3",
		roles: []string{"reader 0 holds", "reader 0 holds", "writer 2", "reader 1", "writer 4"}},
	"downgraded writer": {nodes: []string{guid + "__WRIT__0000000002 e", otherGUID + "__READ__0000000002 e",
		guid + "__WRIT__0000000003 e"}, want: "rwlock waited-for curator 2+1",
		roles: []string{"writer 0 holds", "reader 0 holds", "writer 2"}},
	"readers and a writer of kazoo": {nodes: []string{hex + "__rlock__0000000000 e", hex + "__lock__0000000001 e",
		hex + "__rlock__0000000002 e"}, want: "rwlock waited-for kazoo 1+2",
		roles: []string{"reader 0 holds", "writer 1", "reader 1"}},
	"mutex and read-write lock in one": {nodes: []string{guid + "lock-0000000000 e", guid + "__WRIT__0000000001 e"},
		want: "rwlock held curator 1+0 !mixed-recipes !foreign-children"},
	"latch": {nodes: []string{guid + `latch-0000000000 e "a"`, guid + `latch-0000000001 e "b"`},
		want: "latch waited-for curator 1+1", roles: []string{"candidate 0 holds", "candidate 1"}},
	"latch and mutex in one": {nodes: []string{guid + "latch-0000000000 e", guid + "lock-0000000001 e"},
		want: "mutex held curator 1+0 !mixed-recipes !foreign-children"},
	"semaphore": {data: "\x00\x00\x00\x02", nodes: []string{"leases/" + guid + "lease-0000000000 e",
		"leases/" + guid + "slot-1-lease-0000000001 e", "leases/" + guid + "limit-0000000002 e",
		"locks/" + guid + "lock-0000000000 e", "locks/" + guid + "lock-0000000001 e"},
		want:  "semaphore waited-for curator 2+2 of 2",
		roles: []string{"permit 0 holds", "permit 0 holds", "waiter 0", "waiter 1"}},
	"semaphore without a limit": {nodes: []string{"leases/" + guid + "lease-0000000000 e", "locks p"},
		want: "semaphore held curator 1+0"},
	"semaphore without locks": {nodes: []string{"leases/" + guid + "lease-0000000000 e"},
		want: "semaphore held curator 1+0"},
	"semaphore with a waiter and free permits": {nodes: []string{"leases p", "locks/" + guid + "lock-0000000000 e"},
		want: "semaphore waited-for curator 0+1"},
	"free semaphore": {nodes: []string{"leases p", "locks p"}, want: "semaphore? free curator"},
	"semaphore over its limit": {data: "\x00\x00\x00\x01", nodes: []string{"leases/" + guid + "lease-0000000000 e",
		"leases/" + guid + "lease-0000000001 e"}, want: "semaphore held curator 2+0 of 1 !over-limit"},
	"permits that Curator counts": {nodes: []string{"leases/" + guid + "lease-0000000000 e", "leases/x e"},
		want: "semaphore held curator 1+0 !foreign-children"},
	"semaphore of kazoo": {data: "3", nodes: []string{hex + ` e "host-1"`},
		want: "semaphore? held kazoo 1+0 of 3"},
	"directories named as those of a semaphore": {nodes: []string{"leases/x p", "locks/y p"}, want: "unknown?"},
	"double barrier that is open": {nodes: []string{uuid + " e", otherUUID + " e", `ready p "10.0.0.3"`},
		want: "double-barrier open curator 2+0", roles: []string{"member 0 holds", "member 0 holds"}},
	"double barrier that is not open": {nodes: []string{uuid + " e"}, want: "double-barrier? waited-for curator 0+1"},
	"double barrier of kazoo": {nodes: []string{hex + ` e "host-1-7"`, "ready p"},
		want: "double-barrier open kazoo 1+0"},
	"double barrier of both": {nodes: []string{hex + " e", uuid + " e", "ready p"},
		want: "double-barrier open curator kazoo 2+0"},
	"double barrier without members": {nodes: []string{"ready p"}, want: "double-barrier? abandoned"},
	"group":                          {nodes: []string{"host-1 e", "host-2 e"}, want: "group? curator 2+0"},
	"party":                          {nodes: []string{hex + `__party__ e "host-1"`}, want: "group kazoo 1+0"},
	"shallow party":                  {nodes: []string{hex + "-host-1 e"}, want: "group? kazoo 1+0"},
	"ephemeral and persistent nodes": {nodes: []string{"host-1 e", "config p"}, want: "unknown?"},
	"service": {nodes: []string{`a p {"name":"root","id":"a","address":"10.0.0.3","port":80}`,
		`b0000000001 e {"name":"root","id":"b","address":"10.0.0.4","sslPort":443}`, "other p"},
		want: "service curator 2+0", roles: []string{"instance 0 holds", "instance 0 holds"}},
	"instances of another service": {nodes: []string{`a p {"name":"other","id":"a"}`}, want: "unknown?"},
	"striped lock": {nodes: []string{"programs/" + guid + "stripes-64-0000000000 e",
		"programs/" + guid + "stripes-256-64-0000000001 e", "64 p"}, want: "striped docent 2+0 = 256",
		roles: []string{"member 0 holds", "member 0 holds"}},
	"programs of others": {nodes: []string{"programs/x e"}, want: "unknown?"},
	"condition": {nodes: []string{otherGUID + "wait-0000000001 e", guid + "wait-0000000002 e",
		"signal-0000000001-x p", "all-0000000000 p"}, want: "condition waited-for docent 0+2",
		roles: []string{"waiter 0", "waiter 1"}},
	"cyclic barrier": {data: `{"parties":3,"generation":7,"passed":[]}`, nodes: []string{"7-" + uuid + " e",
		"7-" + otherUUID + " e"}, want: "cyclic-barrier waited-for docent 0+2 of 3 = 7"},
	"cyclic barrier without parties": {data: `{"parties":3,"generation":0,"passed":["x"]}`,
		want: "cyclic-barrier free docent of 3 = 0"},
	"count-down": {data: `{"count":3}`, want: "count-down? closed docent of 3 = 3"},
	"count-down that is open": {data: `{"count":3,"open":true}`, nodes: []string{"x p"},
		want: "count-down? open docent of 3 = 0"},
	"count that is updated": {data: "\x00\x00\x00\x05", nodes: []string{guid + "marker-0000000003 e"},
		want: "count docent 1+0 = 5", roles: []string{"updater 0 holds"}},
	"atomic that is updated": {data: "\x00\x00\x00\x00\x00\x00\x00\x06", nodes: []string{guid + "marker-0000000003 e"},
		want: "atomic docent 1+0 = 6"},
	"value that is updated": {data: "text", nodes: []string{guid + "marker-0000000003 e"}, want: "value docent 1+0"},
	"counts":                {data: "\x00\x00\x01\x00", want: "count? curator = 256"},
	"negative count":        {data: "\xff\xff\xff\xff", want: "count? curator = -1"},
	"atomic":                {data: "\x00\x00\x00\x00\x00\x00\x00\x07", want: "atomic? curator = 7"},
	"counter of kazoo":      {data: "-12", want: "count? kazoo = -12"},
	"text of four bytes":    {data: "true", want: "unknown?"},
	"barrier":               {data: "10.0.0.3", want: "barrier? closed curator"},
	"nothing":               {want: "unknown?"},
	"empty directory":       {nodes: []string{"gone d"}, want: "empty? free"},
	"text":                  {data: "hello", want: "unknown?"},
}

func TestShapes(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		c := client(t, srv, "a")
		for name, shape := range shapes {
			root := "/" + strings.ReplaceAll(name, " ", "-") + "/root"
			create(t, c, root, shape.data)
			for _, line := range shape.nodes {
				node, rest, _ := strings.Cut(line, " ")
				mode, data, _ := strings.Cut(rest, " ")
				var opts []framework.CreateOption
				if mode == "e" {
					opts = append(opts, framework.Ephemeral())
				}
				create(t, c, root+"/"+node, strings.Trim(data, `"`), opts...)
				if mode == "d" {
					require.NoError(t, c.Delete(t.Context(), root+"/"+node, -1))
				}
			}
			o := show(t, c, root)
			require.Equal(t, shape.want, brief(o), name)
			requireWell(t, o)
			if shape.roles != nil {
				require.Equal(t, shape.roles, roles(o), name)
			}
			seen := walk(t, c, root, inspect.WithAll())
			require.Equal(t, shape.want, brief(seen[0]), name)
		}
	})
}

// Curator's waiter at the front has a node among the permits, and counts it.
func TestWaiterOfCuratorIsNoHolder(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		a, b := client(t, srv, "a"), client(t, srv, "b")
		create(t, a, "/s", "\x00\x00\x00\x01")
		create(t, a, "/s/leases/"+guid+"lease-0000000000", "", framework.Ephemeral())
		create(t, b, "/s/leases/"+otherGUID+"lease-0000000001", "", framework.Ephemeral())
		create(t, b, "/s/locks/"+otherGUID+"lock-0000000001", "", framework.Ephemeral())
		o := show(t, a, "/s")
		require.Equal(t, []string{"permit 0 holds", "permit 0", "waiter 0"}, roles(o))
		require.Equal(t, "semaphore waited-for curator 1+2 of 1", brief(o))
		requireWell(t, o)
	})
}

// At the end of the counter the transactions show the order, and not the numbers.
func TestOrderAtTheEndOfTheCounter(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		c := client(t, srv, "a")
		names := []string{"lock--2147483648", "lock-2147483647", "lock--2147483647"}
		for _, name := range names {
			create(t, c, "/lock/"+guid+name, "", framework.Ephemeral())
		}
		for i, n := range show(t, c, "/lock").Nodes {
			require.Equal(t, "/lock/"+guid+names[i], n.Path)
			require.Equal(t, i, n.Ahead)
		}
	})
}

func TestNodesBeyondTheMaximumAreCounted(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		c := client(t, srv, "a")
		for i := range 100 {
			create(t, c, fmt.Sprintf("/lock/%slock-%010d", guid, i), "", framework.Ephemeral())
			create(t, c, fmt.Sprintf("/group/host-%d", i), "", framework.Ephemeral())
			create(t, c, fmt.Sprintf("/semaphore/leases/%slease-%010d", guid, i), "", framework.Ephemeral())
			create(t, c, fmt.Sprintf("/semaphore/locks/%slock-%010d", guid, i), "", framework.Ephemeral())
			create(t, c, fmt.Sprintf("/service/%d", i), fmt.Sprintf(`{"name":"service","id":"%d"}`, i))
		}
		for _, o := range walk(t, c, "/", inspect.WithMaxNodes(3)) {
			requireWell(t, o)
			want := 3
			if o.Kind == inspect.KindSemaphore {
				want = 6
			}
			require.Len(t, o.Nodes, want)
		}
		objects := walk(t, c, "/", inspect.WithMaxNodes(3))
		require.Equal(t, []string{"group group? curator 100+0", "lock mutex waited-for curator 1+99",
			"semaphore semaphore waited-for curator 100+100", "service service curator 100+0"}, lines(objects, "/"))
	})
}
