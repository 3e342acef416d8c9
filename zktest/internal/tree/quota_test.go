package tree

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/zktest/internal/proto"
)

// limited returns a forest with a quota on /a.
func limited(t *testing.T, rules Rules, limits string) *forest {
	f := newForest(t, rules)
	f.make("/a", "123")
	f.make("/zookeeper/quota/a", "")
	f.make("/zookeeper/quota/a/zookeeper_limits", limits)
	return f
}

func TestQuotaCounts(t *testing.T) {
	f := limited(t, Rules{}, "count=9,bytes=-1")
	f.make("/zookeeper/quota/a/zookeeper_stats", "count=0,bytes=0")
	f.make("/a/b", "45")
	f.make("/ab", "no part of it")
	stats := func() string {
		data, _, code := f.tree.Data("/zookeeper/quota/a/zookeeper_stats", nil)
		require.Equal(t, proto.OK, code)
		return string(data)
	}
	require.Equal(t, "count=2,bytes=5", stats())
	require.Equal(t, proto.OK, f.do(removal("/a/b", -1), anyone).Code)
	require.Equal(t, "count=1,bytes=3", stats())
}

func TestHardQuotaIsEnforcedIfAsked(t *testing.T) {
	for _, test := range []struct {
		rules  Rules
		limits string
		want   proto.Code
	}{
		{Rules{EnforceQuota: true}, "count=9,bytes=9,countHardLimit=2", proto.QuotaExceeded},
		{Rules{EnforceQuota: true}, "count=2,bytes=9", proto.OK},
		{Rules{}, "count=9,bytes=9,countHardLimit=2", proto.OK},
	} {
		f := limited(t, test.rules, test.limits)
		f.make("/a/1", "")
		require.Equal(t, test.want, f.do(creation("/a/2", 0), anyone).Code, test.limits)
	}
}

func TestHardQuotaOfBytes(t *testing.T) {
	f := limited(t, Rules{EnforceQuota: true}, "count=9,byteHardLimit=4")
	require.Equal(t, proto.OK, f.do(set("/a", -1), anyone).Code, "as long as before")
	more := set("/a", -1)
	more.Data = []byte("12345")
	require.Equal(t, proto.QuotaExceeded, f.do(more, anyone).Code)
}
