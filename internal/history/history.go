// Package history checks what concurrent operations did against models, with porcupine. A history is
// right if each operation can take effect at one moment between its call and its return, so that the
// model allows all of them one after another.
//
// The models are a lock, a semaphore, a fenced register, a counter and a set. Each names why it refuses
// an operation.
package history

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"

	"github.com/anishathalye/porcupine"
)

// Forever is the return of an operation whose outcome is unknown: it may take effect at any time after
// its call, or after everything else.
const Forever = math.MaxInt64

// Op is one operation of a history. Times are of any clock that all operations share. An operation
// that returns at the moment at which another is called may take effect after it.
type Op struct {
	Call, Return int64
	What         any // one of the operations of the model
}

// State is a state of a model. It never changes.
type State interface {
	// Next returns the state after an operation, or why the operation is impossible in this state.
	Next(what any) (State, error)
}

// maxSteps and stepsOfAnOp bound a check: a history that needs more steps is refused as undecided.
const (
	maxSteps    = 100_000
	stepsOfAnOp = 50
)

// Check returns nil if the model can do all operations from its first state. Otherwise it draws the
// history in an HTML file, and returns an error with the path of the file and the reason: what the model
// says of the first operation that cannot follow the longest possible beginning. A history that is not
// decided within a fixed number of steps is an error, too.
//
// The clock of the check is the number of its steps, so it can run in virtual time.
func Check(first State, ops []Op) error {
	if len(ops) == 0 {
		return nil
	}
	drawing, steps := modelFrom(first), maxSteps+stepsOfAnOp*len(ops)
	bounded := drawing
	bounded.Step = func(state, input, output any) (bool, any) {
		if steps--; steps < 0 {
			return false, nil
		}
		return drawing.Step(state, input, output)
	}
	history := inRows(ops)
	result, info := porcupine.CheckOperationsVerbose(bounded, history, 0)
	if result == porcupine.Ok {
		return nil
	}
	reason := refusal(first, ops, info)
	if steps < 0 {
		reason = fmt.Errorf("undecided, perhaps because of this: %w", reason)
	}
	path, err := draw(drawing, info)
	if err != nil {
		return errors.Join(reason, err)
	}
	return fmt.Errorf("%w; the history is drawn in %s", reason, path)
}

func modelFrom(first State) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return first },
		Step: func(state, input, _ any) (bool, any) {
			next, err := state.(State).Next(input)
			return err == nil, next
		},
		Equal:             func(a, b any) bool { return reflect.DeepEqual(a, b) },
		DescribeOperation: func(input, _ any) string { return fmt.Sprintf("%+v", input) },
		DescribeState:     func(state any) string { return fmt.Sprintf("%+v", state) },
	}
}

// inRows gives each operation a row of the picture in which it overlaps no other one.
func inRows(ops []Op) []porcupine.Operation {
	sorted := slices.Clone(ops)
	slices.SortStableFunc(sorted, func(a, b Op) int { return cmp.Compare(a.Call, b.Call) })
	var rows []int64 // the last return in each
	var all []porcupine.Operation
	for _, op := range sorted {
		row := slices.IndexFunc(rows, func(last int64) bool { return last < op.Call })
		if row < 0 {
			row, rows = len(rows), append(rows, 0)
		}
		rows[row] = op.Return
		all = append(all, porcupine.Operation{ClientId: row, Input: op.What, Call: op.Call, Return: op.Return})
	}
	return all
}

// refusal returns why the longest possible beginning cannot go on.
func refusal(first State, ops []Op, info porcupine.LinearizationInfo) error {
	var longest []porcupine.Operation
	for _, beginning := range info.PartialLinearizationsOperations()[0] {
		if len(beginning) > len(longest) {
			longest = beginning
		}
	}
	state, missing := first, slices.Clone(ops)
	for _, op := range longest {
		state, _ = state.Next(op.Input)
		i := slices.IndexFunc(missing, func(m Op) bool {
			return m.Call == op.Call && m.Return == op.Return && reflect.DeepEqual(m.What, op.Input)
		})
		missing = slices.Delete(missing, i, i+1)
	}
	next := slices.MinFunc(missing, func(a, b Op) int { return cmp.Compare(a.Return, b.Return) })
	if _, err := state.Next(next.What); err != nil {
		return err
	}
	return fmt.Errorf("%+v contradicts later operations", next.What)
}

func draw(model porcupine.Model, info porcupine.LinearizationInfo) (path string, err error) {
	file, err := os.CreateTemp("", "docent-history-*.html")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return file.Name(), porcupine.Visualize(model, info, file)
}
