package peer

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fake is a lock that can be acquired once.
type fake struct{ taken bool }

func (f *fake) Acquire(context.Context) (Held, error) {
	if f.taken {
		return nil, errors.New("taken,\nor not")
	}
	f.taken = true
	return f, nil
}

func (*fake) Token() int64                { return 7 }
func (*fake) Look(context.Context) State  { return Valid }
func (*fake) Write(context.Context) error { return errors.New("late") }

func (f *fake) Release(context.Context) error {
	f.taken = false
	return nil
}

func TestProgramAnswersEachLine(t *testing.T) {
	kind := Kind{start: func(context.Context, Config) (func(string) (Lock, error), error) {
		return func(string) (Lock, error) { return &fake{}, nil }, nil
	}}
	in := strings.NewReader("look\nacquire\nacquire\nlook\nacquire\nwrite\nrelease\nloop 1\nmany 3\nnone\nnonsense\n")
	var out strings.Builder
	require.NoError(t, Serve(t.Context(), kind, Config{}, in, &out))
	answers := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, answers, 12)
	for i, want := range []string{"ready", "failed the lock was not acquired", "held 7 ", "failed taken,; or not",
		"valid", "failed taken", "refused", "released ", "looped ops=", "many ", "freed ", "failed cannot do"} {
		require.True(t, strings.HasPrefix(answers[i], want), "%d: %q, want %q", i, answers[i], want)
	}
}

func TestKindsHaveDifferentNames(t *testing.T) {
	names := map[string]bool{}
	for _, k := range Kinds {
		require.False(t, names[k.Name], k.Name)
		require.True(t, k.start != nil || k.Command != "", k.Name)
		names[k.Name] = true
	}
	_, ok := Find("nothing")
	require.False(t, ok)
}
