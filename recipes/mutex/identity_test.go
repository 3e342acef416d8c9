package mutex_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
)

func TestParticipantsHaveIdentities(t *testing.T) {
	client, path := testzk.Connected(t, testzk.Connect()), testzk.Path(t)
	mu := newMutex(t, client, path, mutex.WithIdentity())
	hold := acquire(t, mu)
	testlock.Start(t, newMutex(t, client, path, mutex.WithData([]byte("worker 7"))).Acquire)
	queue := queued(t, mu, 2)
	host, err := os.Hostname()
	require.NoError(t, err)
	want := recipes.Identity{Host: host, Process: "mutex.test", PID: os.Getpid()}
	require.Equal(t, &want, queue[0].Identity)
	var onTheServer recipes.Identity
	require.NoError(t, json.Unmarshal(queue[0].Data, &onTheServer))
	require.Equal(t, want, onTheServer)
	require.Nil(t, queue[1].Identity)
	require.NoError(t, hold.Release())
}

func TestRevokeReplacesTheIdentity(t *testing.T) {
	client, path := testzk.Connected(t, testzk.Connect()), testzk.Path(t)
	mu := newMutex(t, client, path, mutex.WithIdentity())
	hold := acquire(t, mu)
	require.NoError(t, recipes.Revoke(testzk.Context(t), client, recipes.Participant{Node: hold.Path()}))
	queue := queued(t, mu, 1)
	require.Nil(t, queue[0].Identity)
	require.Equal(t, recipes.RevokeMessage, string(queue[0].Data))
	require.NoError(t, hold.Release())
}

func TestDataAndIdentityExcludeEachOther(t *testing.T) {
	client, err := framework.New("127.0.0.1:1")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	for _, data := range [][]byte{nil, []byte("x")} {
		_, err = mutex.New(client, "/lock", mutex.WithData(data), mutex.WithIdentity())
		require.EqualError(t, err,
			"new mutex: WithData and WithIdentity exclude each other: both set the data of the lock nodes")
	}
}
