package recipes_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/barrier"
	"github.com/docent-zk/docent/recipes/counter"
	"github.com/docent-zk/docent/recipes/leader"
	"github.com/docent-zk/docent/recipes/semaphore"
	"github.com/docent-zk/docent/zktest"
)

// fuzzed is the node with the data. Any client may have written it.
const fuzzed = "/fuzz/a-term"

// readers are calls that read the data of fuzzed, with the errors of other data than their own.
var readers = map[string]struct {
	read func(t *testing.T, c *framework.Client, data []byte) error
	errs []error
}{
	"number": {func(t *testing.T, c *framework.Client, _ []byte) error {
		n, err := counter.NewAtomic(c, fuzzed)
		require.NoError(t, err)
		return addOne(t, n.Get, n.Add)
	}, []error{counter.ErrCorrupt, counter.ErrOverflow}},
	"text": {func(t *testing.T, c *framework.Client, _ []byte) error {
		n, err := counter.NewAtomic(c, fuzzed, counter.WithText())
		require.NoError(t, err)
		return addOne(t, n.Get, n.Add)
	}, []error{counter.ErrCorrupt, counter.ErrOverflow}},
	"count": {func(t *testing.T, c *framework.Client, _ []byte) error {
		n, err := counter.NewCount(c, fuzzed, 7)
		require.NoError(t, err)
		return addOne(t, n.Get, n.Add)
	}, []error{counter.ErrCorrupt, counter.ErrOverflow}},
	"value": {func(t *testing.T, c *framework.Client, data []byte) error {
		v, err := counter.NewValue(c, fuzzed, nil)
		require.NoError(t, err)
		got, err := v.Get(testzk.Context(t))
		require.Equal(t, string(data), string(got))
		return err
	}, nil},
	"latch": {func(t *testing.T, c *framework.Client, _ []byte) error {
		l, err := barrier.NewCountDown(c, fuzzed, 3)
		require.NoError(t, err)
		missing, err := l.Count(testzk.Context(t))
		if err == nil {
			require.Contains(t, []int{0, 3}, missing, "it was never counted down, but it may be said to be open")
		}
		return err
	}, []error{barrier.ErrParties}},
	"cyclic barrier": {func(t *testing.T, c *framework.Client, data []byte) error {
		b, err := barrier.NewCyclic(c, fuzzed, 1)
		require.NoError(t, err)
		generation, err := b.Await(testzk.Context(t))
		var cycle struct {
			Parties, Generation int64
			Passed              []string
		}
		invalid := json.Unmarshal(data, &cycle)
		if invalid == nil && cycle.Parties == 1 && cycle.Generation >= 0 && cycle.Generation < math.MaxInt64 {
			require.NoError(t, err)
			require.Equal(t, cycle.Generation, generation)
		}
		return err
	}, []error{barrier.ErrParties}},
	"shared limit": {func(t *testing.T, c *framework.Client, _ []byte) error {
		s, err := semaphore.New(c, "/fuzz/s", 1, semaphore.WithSharedLimit(fuzzed))
		require.NoError(t, err)
		return holdOnce(t, s)
	}, []error{semaphore.ErrLimit, recipes.ErrNotAcquired}},
	"fixed limit": {func(t *testing.T, c *framework.Client, _ []byte) error {
		s, err := semaphore.New(c, fuzzed, 2)
		require.NoError(t, err)
		return holdOnce(t, s)
	}, []error{semaphore.ErrLimit}},
	"term record": {func(t *testing.T, c *framework.Client, data []byte) error {
		once := leader.WithRequeue(func(error) bool { return false })
		e, err := leader.New(c, strings.TrimSuffix(fuzzed, "-term"), leader.WithLockDelay(time.Microsecond), once)
		require.NoError(t, err)
		led := false
		err = e.Run(testzk.Context(t), func(context.Context, *leader.Term) error {
			led = true
			return nil
		})
		if err != nil {
			require.ErrorContains(t, err, "does not hold a term record")
		}
		require.Equal(t, err == nil, led)
		return nil
	}, nil},
}

// addOne reads a number, and adds 1 to it.
func addOne[T int32 | int64](
	t *testing.T, get func(context.Context) (T, error), add func(context.Context, T) (T, error),
) error {
	before, err := get(testzk.Context(t))
	if err != nil {
		return err
	}
	after, err := add(testzk.Context(t), 1)
	if err == nil {
		require.Equal(t, before+1, after)
	}
	return err
}

func holdOnce(t *testing.T, s *semaphore.Semaphore) error {
	hold, err := s.TryAcquire(testzk.Context(t))
	if err == nil {
		require.NoError(t, hold.Release())
	}
	return err
}

// FuzzData shows arbitrary data to all recipes that read the data of one node.
func FuzzData(f *testing.F) {
	for _, data := range []string{
		"", "1", "-9223372036854775808", "9223372036854775807", "\x7f\xff\xff\xff", "\xff\xff\xff\xff",
		"\x00\x00\x00\x02", "\x00\x00\x00\x00", "\x7f\xff\xff\xff\xff\xff\xff\xff", `{}`, `null`, `[]`,
		`{"count":3}`, `{"count":3,"open":true}`, `{"count":-3}`,
		`{"parties":1,"generation":0,"passed":[]}`, `{"parties":1,"generation":9223372036854775807}`,
		`{"parties":1,"generation":9223372036854775806}`,
		`{"parties":1,"generation":-5,"passed":["",""]}`, `{"parties":1e9}`, `{"token":1}`,
		`{"token":9223372036854775807}`, `{"token":5,"resigned":true}`, `{"token":-1}`, `{"token":"x"}`,
	} {
		f.Add([]byte(data))
	}
	srv := zktest.Start(f)
	c := testzk.Connected(f, srv.MemAddr(), framework.WithDialer(srv.Client("fuzz").DialContext))
	f.Fuzz(func(t *testing.T, data []byte) {
		for name, reader := range readers {
			_, err := c.Create(testzk.Context(t), fuzzed, data, framework.Parents())
			require.NoError(t, err)
			if err := reader.read(t, c, data); err != nil {
				is := func(target error) bool { return errors.Is(err, target) }
				require.True(t, slices.ContainsFunc(reader.errs, is), "%s: %q: %v", name, data, err)
			}
			require.NoError(t, c.DeleteRecursive(testzk.Context(t), "/fuzz"))
		}
	})
}

// FuzzIdentity reads arbitrary data of participants. What is printed of it is short and can be printed.
func FuzzIdentity(f *testing.F) {
	f.Add([]byte(`{"host":"a","process":"b","pid":1}`))
	f.Add([]byte(`{"host":"\u0007\ud800","process":"é","pid":-1}`))
	f.Add([]byte("{\"host\":\"\xff\x1b[31m\"}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		id := recipes.ParseIdentity(data)
		if id == nil {
			return
		}
		text := id.String()
		require.True(t, utf8.ValidString(text))
		require.LessOrEqual(t, utf8.RuneCountInString(text), 100+100+30)
		for _, r := range text {
			require.True(t, unicode.IsPrint(r), "%q", r)
		}
	})
}
