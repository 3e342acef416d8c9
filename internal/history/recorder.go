package history

import "sync"

// Recorder records the operations of goroutines of one process. Its clock counts calls and returns, so
// no two are at one moment, also in virtual time. The zero value is ready for use.
type Recorder struct {
	mu    sync.Mutex
	clock int64
	ops   []Op
}

// Call returns the moment at which an operation is called.
func (r *Recorder) Call() (moment int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clock++
	return r.clock
}

// Return records that an operation, called at a moment, has returned.
func (r *Recorder) Return(call int64, what any) { r.add(Op{Call: call, Return: r.Call(), What: what}) }

// Unknown records that an operation, called at a moment, may be applied at any time, or never.
func (r *Recorder) Unknown(call int64, what any) { r.add(Op{Call: call, Return: Forever, What: what}) }

func (r *Recorder) add(op Op) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops = append(r.ops, op)
}

// Check checks what was recorded.
func (r *Recorder) Check(first State) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Check(first, r.ops)
}
