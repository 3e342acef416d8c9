package history_test

import (
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/history"
)

// at returns an operation at one moment.
func at(moment int64, what any) history.Op { return during(moment, moment, what) }

func during(call, end int64, what any) history.Op {
	return history.Op{Call: call, Return: end, What: what}
}

func exclusive(n int, token int64) history.Acquire { return history.Acquire{Hold: n, Token: token} }

func shared(n int, token int64) history.Acquire {
	return history.Acquire{Hold: n, Token: token, Shared: true}
}

// by makes a hold one of a member.
func by(member int, a history.Acquire) history.Acquire {
	a.By = member
	return a
}

func permits(n int, token int64, count int, slots ...int) history.Acquire {
	return history.Acquire{Hold: n, Token: token, Permits: count, Slots: slots}
}

func end(n int) history.End { return history.End{Hold: n} }

// steps returns operations one after another.
func steps(what ...any) (ops []history.Op) {
	for i, w := range what {
		ops = append(ops, at(int64(i), w))
	}
	return ops
}

// examples are histories of a model, with what Check must say of each; empty if it is right.
type examples map[string]struct {
	ops  []history.Op
	want string
}

func (e examples) check(t *testing.T, first history.State) {
	t.Helper()
	for name, example := range e {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir()) // of the drawings
			err := history.Check(first, example.ops)
			if example.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, example.want)
			drawn := regexp.MustCompile(`drawn in (\S+\.html)`).FindStringSubmatch(err.Error())
			require.Len(t, drawn, 2, "%v", err)
			page, err := os.ReadFile(drawn[1])
			require.NoError(t, err)
			require.Contains(t, string(page), "<html")
		})
	}
}

func TestLockRefusesTwoHoldersAndTokensThatDoNotGrow(t *testing.T) {
	beside, passed, wiped := by(1, exclusive(2, 1)), exclusive(2, 1), exclusive(2, 1)
	beside.Beside, passed.Passed, wiped.Wiped = true, true, 1
	examples{
		"nothing":          {},
		"in turn":          {steps(exclusive(1, 1), end(1), exclusive(2, 2), end(2)), ""},
		"two holders":      {steps(exclusive(1, 1), exclusive(2, 2), end(1), end(2)), "two valid holds at a time"},
		"inside":           {steps(exclusive(1, 1), exclusive(2, 2), end(2), end(1)), "two valid holds at a time"},
		"same token":       {steps(exclusive(1, 1), end(1), exclusive(2, 1)), "not larger than 1"},
		"smaller token":    {steps(exclusive(1, 2), end(1), exclusive(2, 1)), "not larger than 2"},
		"passed node":      {steps(exclusive(1, 1), end(1), passed), ""},
		"token of its own": {steps(by(1, exclusive(1, 1)), end(1), by(1, exclusive(2, 1))), ""},
		"of another":       {steps(by(1, exclusive(1, 1)), end(1), by(2, exclusive(2, 1))), "not larger than 1"},
		"wiped servers":    {steps(exclusive(1, 7), end(1), wiped), ""},
		"readers":          {steps(shared(1, 2), shared(2, 1), end(1), end(2)), ""},
		"reader, writer":   {steps(shared(1, 1), exclusive(2, 2)), "two valid holds at a time"},
		"writer, reader":   {steps(exclusive(1, 1), shared(2, 2)), "two valid holds at a time"},
		"reader's token":   {steps(exclusive(1, 2), end(1), shared(2, 1)), "not larger than 2"},
		"writer's token":   {steps(shared(1, 2), end(1), exclusive(2, 2)), "earlier shared hold"},
		"downgrade":        {steps(by(1, exclusive(1, 1)), by(1, shared(2, 1)), end(1), shared(3, 2)), ""},
		"upgrade":          {steps(by(1, shared(1, 1)), beside, end(1), end(2)), ""},
		"beside a reader":  {steps(by(1, shared(1, 1)), shared(3, 2), beside), "two valid holds at a time"},
		"ends twice":       {steps(exclusive(1, 1), end(1), end(1)), "did not begin"},
		"late acquire": {
			[]history.Op{during(1, 5, exclusive(2, 2)), during(2, 3, exclusive(1, 1)), at(4, end(1)), at(5, end(2))},
			"",
		},
		"order of tokens": {
			[]history.Op{during(1, 5, exclusive(2, 1)), during(2, 3, exclusive(1, 2)), at(4, end(1)), at(5, end(2))},
			"not larger than 2",
		},
	}.check(t, history.Lock{})
	examples{
		"after": {steps(exclusive(1, 6)), ""}, "reader's": {steps(shared(1, 4)), ""},
		"before": {steps(exclusive(1, 5)), "token is not larger than 5"},
	}.check(t, history.Lock{Exclusive: 3, Shared: 5})
}

func TestSemaphoreRefusesOnePermitTooMany(t *testing.T) {
	limit := func(zxid int64, n int) history.Limit { return history.Limit{Zxid: zxid, Permits: n} }
	examples{
		"as many as there are": {steps(permits(1, 1, 1), permits(2, 2, 1), end(1), permits(3, 3, 1)), ""},
		"one too many":         {steps(permits(1, 1, 1), permits(2, 2, 1), permits(3, 3, 1)), "3 valid permits"},
		"two at once":          {steps(permits(1, 1, 1), permits(2, 2, 2)), "3 valid permits"},
		"larger limit":         {steps(permits(1, 1, 2), limit(2, 3), permits(2, 3, 1)), ""},
		"smaller limit":        {steps(permits(1, 1, 1), limit(2, 1), permits(2, 3, 1)), "2 valid permits"},
		"smaller limit later":  {steps(permits(1, 1, 1), permits(2, 2, 1), limit(3, 0), end(1)), ""},
		"slots":                {steps(permits(1, 1, 1, 0), permits(2, 2, 1, 1)), ""},
		"one slot of two":      {steps(permits(1, 1, 1, 0), permits(2, 2, 1, 0)), "slot 0 is of two holds"},
		"repeated token":       {steps(permits(1, 1, 1), permits(2, 1, 1)), "not larger than 1"},
		"acquire before the limit": {
			[]history.Op{during(1, 4, permits(1, 1, 2)), at(3, limit(2, 1)), at(5, end(1))}, "",
		},
		"acquire after the limit": {
			[]history.Op{at(0, limit(2, 1)), during(1, 4, permits(1, 3, 2)), at(5, end(1))}, "2 valid permits",
		},
	}.check(t, history.Semaphore{Permits: 2})
}

func TestRegisterRefusesWritesWithOldTokens(t *testing.T) {
	write := func(token int64, value string) history.Write { return history.Write{Token: token, Value: value} }
	transaction := func(zxid int64) history.Write { return history.Write{Token: 1, Zxid: zxid} }
	read := func(value string) history.Read { return history.Read{Value: value} }
	refused := history.Write{Token: 1, Value: "late", Refused: true}
	examples{
		"in turn":         {steps(write(1, "a"), read("a"), write(2, "b"), read("b")), ""},
		"old token":       {steps(write(2, "b"), write(1, "a")), "accepted after token 2"},
		"is refused":      {steps(write(2, "b"), refused, read("b")), ""},
		"refused, and is": {steps(write(2, "b"), refused, read("late")), `"late" was read`},
		"refused for no":  {steps(write(1, "b"), refused), "refused after token 1"},
		"lost":            {steps(write(1, "a"), write(1, "b"), read("a")), `"a" was read`},
		"old read":        {steps(write(2, "b"), history.Read{Token: 1, Value: "b"}), "a read was accepted"},
		"after a read":    {steps(history.Read{Token: 2}, write(1, "a")), "accepted after token 2"},
		"unfenced":        {steps(write(0, "b"), write(0, "a"), read("a")), ""},
		"transactions":    {steps(transaction(8), transaction(7)), "transaction 0x8"},
		"unknown": {
			[]history.Op{during(1, history.Forever, write(1, "a")), at(2, read("")), at(3, read("a"))}, "",
		},
		"unknown, and no more": {
			[]history.Op{
				during(1, history.Forever, write(1, "a")), at(2, read("a")), at(3, read("")),
			}, `"" was read`,
		},
	}.check(t, history.Register{})
}

func TestCounterRefusesALostUpdate(t *testing.T) {
	add := func(delta, sum int64) history.Add { return history.Add{Delta: delta, Sum: sum, Known: true} }
	get := func(value int64) history.Get { return history.Get{Value: value} }
	examples{
		"in turn":     {steps(add(1, 1), add(2, 3), get(3)), ""},
		"lost update": {steps(add(1, 1), add(2, 2), get(2)), "0x1 and 0x2 are not 0x2"},
		"lost later":  {steps(add(1, 1), add(2, 3), get(1)), "0x1 was read from a counter with 0x3"},
		"twice":       {steps(add(1, 1), get(2)), "0x2 was read"},
		"swap":        {steps(add(1, 1), history.Swap{Old: 1, New: 5}, get(5)), ""},
		"stale swap":  {steps(add(1, 1), history.Swap{Old: 0, New: 5}, get(5)), "0x0 became 0x5, and was 0x1"},
		"put":         {steps(add(1, 1), history.Put{Value: 7}, get(7)), ""},
		"lost put":    {steps(history.Put{Value: 7}, get(0)), "0x0 was read from a counter with 0x7"},
		"both at once": {
			[]history.Op{during(1, 4, add(1, 3)), during(2, 3, add(2, 2)), at(5, get(3))}, "",
		},
		"unknown, applied": {
			[]history.Op{during(1, history.Forever, history.Add{Delta: 1}), at(2, get(0)), at(3, get(1))}, "",
		},
		"unknown, not applied": {[]history.Op{during(1, history.Forever, history.Add{Delta: 1}), at(2, get(0))}, ""},
	}.check(t, history.Counter{})
}

func TestSetRefusesALostElement(t *testing.T) {
	insert := func(e string) history.Insert { return history.Insert{Element: e} }
	all := func(elements ...string) history.Elements { return history.Elements{All: elements} }
	examples{
		"kept":         {steps(all(), insert("b"), insert("a"), all("a", "b")), ""},
		"lost":         {steps(insert("a"), insert("b"), all("b")), "[b] was read from a set of [a b]"},
		"never added":  {steps(insert("a"), all("a", "b")), "[a b] was read from a set of [a]"},
		"under way":    {[]history.Op{during(1, 5, insert("a")), at(2, all()), at(3, all("a"))}, ""},
		"goes again":   {[]history.Op{during(1, 5, insert("a")), at(2, all("a")), at(3, all())}, "[] was read"},
		"never return": {[]history.Op{during(1, history.Forever, insert("a")), at(2, all())}, ""},
	}.check(t, history.Set{})
}

func TestModelsRefuseOperationsOfOthers(t *testing.T) {
	for _, m := range []history.State{
		history.Lock{}, history.Semaphore{}, history.Register{}, history.Counter{}, history.Set{},
	} {
		_, err := m.Next("hello")
		require.ErrorContains(t, err, "no operation string")
	}
}

// Many operations of unknown outcome have too many orders to try all of them. The check ends and does
// not call the history right.
func TestUndecidedHistoryIsAnError(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // of the drawing
	var ops []history.Op
	for i := range 40 {
		ops = append(ops, during(int64(i), history.Forever, history.Insert{Element: fmt.Sprint(i)}))
	}
	ops = append(ops, at(100, history.Elements{All: []string{"no"}}))
	err := history.Check(history.Set{}, ops)
	require.ErrorContains(t, err, "undecided")
}
