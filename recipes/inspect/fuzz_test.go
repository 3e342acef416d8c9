package inspect_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/inspect"
	"github.com/docent-zk/docent/zktest"
)

// FuzzWalk shows a node with arbitrary data, whose children have arbitrary names and data. Each line has a
// name, e for an ephemeral node, and data.
func FuzzWalk(f *testing.F) {
	for _, shape := range shapes {
		f.Add([]byte(shape.data), strings.Join(shape.nodes, "\n"))
	}
	f.Add([]byte(`{"parties":-1,"generation":9223372036854775807,"passed":[""]}`), "-1-x e\n9223372036854775807-x e")
	f.Add([]byte("\xff\xff\xff\xff"), "leases d\nlocks d\nlock-99999999999 e\n-lock--2147483648 e {}")
	f.Add([]byte("{}"), "leases/x-lease-2147483647 e\nlocks/y-lock--2147483648 e\nlocks/lock-2147483647 e")
	srv := zktest.Start(f)
	c := testzk.Connected(f, srv.MemAddr(), framework.WithDialer(srv.Client("fuzz").DialContext))
	f.Fuzz(func(t *testing.T, data []byte, children string) {
		const root = "/a/root"
		ctx := testzk.Context(t)
		_, err := c.Create(ctx, root, data, framework.Parents())
		require.NoError(t, err)
		for line := range strings.Lines(children) {
			name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			mode, content, _ := strings.Cut(rest, " ")
			opts := []framework.CreateOption{framework.Parents()}
			if mode == "e" {
				opts = append(opts, framework.Ephemeral())
			}
			_, _ = c.Create(ctx, root+"/"+name, []byte(content), opts...) // not every name is one of a node
		}
		for o, err := range inspect.Walk(ctx, c, root, inspect.WithAll()) {
			require.NoError(t, err)
			require.LessOrEqual(t, o.Holders+o.Waiters, 1+strings.Count(children, "\n"), o.Path)
			_, err = json.Marshal(o)
			require.NoError(t, err)
		}
		require.NoError(t, c.DeleteRecursive(ctx, "/a"))
	})
}

// FuzzID reads arbitrary texts as ids.
func FuzzID(f *testing.F) {
	for _, text := range []string{
		"0x10000a2b3c40001", "-1", "0xffffffffffffffff", "18446744073709551615", "0b1", "1_0", "",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		id, err := inspect.ParseID(text)
		if err != nil {
			require.Contains(t, err.Error(), strconv.Quote(text))
			return
		}
		again, err := inspect.ParseID(id.String())
		require.NoError(t, err)
		require.Equal(t, id, again)
	})
}
