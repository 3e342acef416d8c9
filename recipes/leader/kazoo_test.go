package leader_test

import (
	"path"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/leader"
)

func TestCandidatesOfEitherNamesQueueTogether(t *testing.T) {
	p, c := testzk.Path(t), own(t)
	kazoos := stand(t, c, p, leader.WithKazooNames(), leader.WithID("kazoo's"))
	require.Regexp(t, uuid+`__lock__\d{10}$`, path.Base(kazoos.leads(t).Path()))
	stand(t, own(t), p, leader.WithID("ours"))
	all := queued(t, c, p, 2)
	require.Equal(t, "kazoo's", string(all[0].Data))
	require.True(t, all[0].Holds)
	require.Equal(t, "ours", string(all[1].Data))
	require.False(t, all[1].Holds)
}

func TestLatchHasNoKazooNames(t *testing.T) {
	_, err := leader.NewLatch(own(t), testzk.Path(t), leader.WithKazooNames())
	require.ErrorContains(t, err, "kazoo has no Latch")
}
