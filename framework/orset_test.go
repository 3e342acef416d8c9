package framework_test

import (
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest/fault"
)

func TestCreateOrSetCreatesANodeOrSetsItsData(t *testing.T) {
	c, o := testzk.Connected(t, testzk.Connect()), testzk.Observer(t)
	for name, on := range map[string]operations{"client": c, "session": session(t, c)} {
		ctx, node := testzk.Context(t), testzk.Path(t)+"/a/n"
		r, err := on.CreateResult(ctx, node, []byte("one"), framework.OrSet(), framework.Parents())
		require.NoError(t, err, name)
		require.Equal(t, node, r.Path)
		require.Nil(t, r.Stat, "it was created")
		_, created, _ := observe(t, o, node)
		require.Equal(t, created.Czxid, r.Czxid)

		r, err = on.CreateResult(ctx, node, []byte("two"), framework.OrSet(), framework.Ephemeral())
		require.NoError(t, err)
		data, stat, _ := observe(t, o, node)
		require.Equal(t, "two", string(data))
		require.Equal(t, stat, r.Stat)
		require.Equal(t, node, r.Path)
		require.Zero(t, r.Czxid)
		require.Zero(t, stat.EphemeralOwner, "it keeps its kind")
		require.Equal(t, int32(1), stat.Version)
	}
}

func TestCreateOrSetCreatesANodeThatIsDeletedMeanwhile(t *testing.T) {
	c, p := proxied(t)
	ctx, under, o := testzk.Context(t), parent(t), testzk.Observer(t)
	require.NoError(t, create(o, under+"/n"))
	held := p.On(fault.Match{Op: fault.OpSetData}, fault.Hold())
	result := make(chan error, 1)
	go func() {
		_, err := c.Create(ctx, under+"/n", []byte("new"), framework.OrSet())
		result <- err
	}()
	require.NoError(t, held.Wait(ctx))
	require.NoError(t, o.Delete(under+"/n", -1))
	held.Release()
	require.NoError(t, <-result)
	data, stat, there := observe(t, o, under+"/n")
	require.True(t, there)
	require.Equal(t, "new", string(data))
	require.Zero(t, stat.Version, "created")
}

// A repetition could overwrite what another client has written since.
func TestCreateOrSetIsNotRepeatedAfterALostRequestOrReply(t *testing.T) {
	o := testzk.Observer(t)
	for name, action := range faults {
		for _, existing := range []bool{false, true} {
			c, p := proxied(t)
			under, op := parent(t), fault.OpCreate
			if existing {
				op = fault.OpSetData
				require.NoError(t, create(o, under+"/n"))
				testzk.Everywhere(t)
			}
			p.On(fault.Match{Op: op, Path: under}, action)
			_, err := c.Create(testzk.Context(t), under+"/n", []byte("data"), framework.OrSet())
			failed(t, err, framework.Unknown, zk.ErrConnectionClosed)
			require.Equal(t, 1, p.Requests()[op], "%s, existing %v", name, existing)
			data, _, _ := observe(t, o, under+"/n")
			require.Equal(t, name == "reply lost", string(data) == "data", "%s, existing %v", name, existing)
			require.NoError(t, c.Close())
		}
	}
}
