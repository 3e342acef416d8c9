package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCampaignsAreAddedUp(t *testing.T) {
	text := renderCampaigns([]campaign{
		{date: "2026-01-02", commit: "0123abc", command: "make siege DURATION=1h SEED=1", faults: 1_234, says: "a|b"},
		{date: "2026-01-03", commit: "0123abd", command: "make swarm SEEDS=1000000", seeds: 1_000_000},
		{date: "2026-01-04", commit: "0123abe", command: "make swarm SEEDS=20", seeds: 20},
	})
	require.Contains(t, text, `
| 2026-01-02 | 0123abc | `+"`make siege DURATION=1h SEED=1`"+` | 1,234 |  | a\|b |
| 2026-01-03 | 0123abd | `+"`make swarm SEEDS=1000000`"+` |  | 1,000,000 |  |
| 2026-01-04 | 0123abe | `+"`make swarm SEEDS=20`"+` |  | 20 |  |

In all 1,234 faults and 1,000,020 seeds.
`)
	require.Empty(t, renderCampaigns(nil))
}
