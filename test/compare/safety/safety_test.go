package safety

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/fence"
	"github.com/docent-zk/docent/test/compare/peer"
	"github.com/docent-zk/docent/test/compare/worker"
)

func TestUpdateIsLostWhenItWasNotRead(t *testing.T) {
	var r register
	first, _ := r.read(0)
	second, _ := r.read(0)
	require.True(t, r.write(0, second))
	require.Zero(t, r.lost)
	require.True(t, r.write(0, first))
	require.Equal(t, 1, r.lost)
	third, _ := r.read(0)
	require.True(t, r.write(0, third))
	require.Equal(t, 1, r.lost)
}

func TestTokenKeepsALateWriteOut(t *testing.T) {
	r := register{fence: &fence.Register{}}
	first, ok := r.read(7)
	require.True(t, ok)
	second, ok := r.read(8)
	require.True(t, ok, "a later holder")
	require.False(t, r.write(7, first), "the read of the later holder has shown its token")
	require.True(t, r.write(8, second))
	require.Zero(t, r.lost)
	_, ok = r.read(3)
	require.False(t, ok, "tokens have begun again")
}

func TestTheoryKnowsOnlyKindsAndFaultsThatAre(t *testing.T) {
	for _, table := range []map[string][]Fault{safe, fatal} {
		for name, faults := range table {
			_, ok := peer.Find(name)
			require.True(t, ok, name)
			for _, f := range faults {
				require.Contains(t, Faults, f)
			}
		}
	}
	for name := range fatal {
		for _, f := range fatal[name] {
			require.NotContains(t, safe[name], f)
		}
	}
}

func TestRowThatContradictsTheoryIsAnError(t *testing.T) {
	none, some := 0, 1
	require.Empty(t, Check(Row{Kind: "docent", Fault: Pause, Plain: &none, Token: &none, Guard: &none}))
	require.Len(t, Check(Row{Kind: "docent", Fault: Pause, Plain: &some, Token: &some, Guard: &none}), 2)
	require.Len(t, Check(Row{Kind: "docent", Fault: PauseLate, Plain: &none, Token: &none, Guard: &none}), 1,
		"the fault was not aimed")
	require.Len(t, Check(Row{Kind: "setnx-expire", Fault: KillAcquire, Plain: &none}), 1, "it has to be stuck")
	require.Empty(t, Check(Row{Kind: "setnx-expire", Fault: KillAcquire, Plain: &none, Stuck: true}))
	require.Empty(t, Check(Row{Kind: "docent", Fault: PauseLate, Reason: "not run"}))
}

func TestSceneIsRunAgainOnlyIfAProgramFailedOrWasLate(t *testing.T) {
	for _, err := range []error{worker.ErrFailed, context.DeadlineExceeded} {
		require.ErrorIs(t, late(fmt.Errorf("docent: %w", err)), errLate)
		require.ErrorIs(t, late(err), err)
	}
	for _, err := range []error{nil, context.Canceled, errors.New("docent has ended")} {
		require.Equal(t, err, late(err))
	}
}

// No lock of docent on ZooKeeper may lose an update with the token or a guard, under any fault.
func TestTheoryOfDocent(t *testing.T) {
	k, _ := peer.Find("docent")
	for _, f := range Faults {
		e := Theory(k, f)
		require.Equal(t, [2]Verdict{Never, Never}, [2]Verdict{e.Token, e.Guard}, f)
	}
}
