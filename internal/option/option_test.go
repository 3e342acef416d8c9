package option_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/option"
)

type config struct{ set []string }

type opt func(*config) error

func with(name string) opt {
	return func(c *config) error {
		c.set = append(c.set, name)
		return nil
	}
}

func TestOptionsAreAppliedInOrder(t *testing.T) {
	var c config
	require.NoError(t, option.Apply(&c, []opt{with("a"), with("b"), with("a")}))
	require.Equal(t, []string{"a", "b", "a"}, c.set)
	require.NoError(t, option.Apply[config, opt](&c, nil))
}

func TestTheFirstErrorEndsTheList(t *testing.T) {
	refusal := errors.New("WithB: 7 is too much")
	refuse := func(*config) error { return refusal }
	for name, row := range map[string]struct {
		second opt
		want   string
	}{
		"refused": {refuse, refusal.Error()},
		"nil":     {nil, "option 1 is nil"},
	} {
		var c config
		require.EqualError(t, option.Apply(&c, []opt{with("a"), row.second, with("c")}), row.want, name)
		require.Equal(t, []string{"a"}, c.set, name)
	}
}
