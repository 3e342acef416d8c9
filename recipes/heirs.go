package recipes

import "time"

// Heirs are those to whom a lock node goes when its hold is released, instead of being deleted. Each of them has a hold, and
// levels, of its own. It is for recipes, and nothing for programs to implement.
type Heirs interface {
	// Next is asked when a hold is over, for whom to give the next one of the same node: it is told by calling what Next returns. Nil
	// means that the node is to be given up. It must not block, and neither must what it returns.
	Next() func(*Hold)
	// Over hears, once, that there will be no further hold of the node: it is deleted, or being deleted, or was lost.
	Over()
}

// Bequeath makes heirs of those who may have the node of a hold that nobody else knows of yet. It is for recipes.
func Bequeath(h *Hold, heirs Heirs) {
	t := h.tenure
	t.mu.Lock()
	over := t.err != nil // then whoever ended it does not tell the heirs, who come too late
	if !over {
		t.heirs = heirs
	}
	t.mu.Unlock()
	if over {
		heirs.Over()
	}
}

// passOn gives the node to an heir, unless somebody asks for it back or something that a former owner began may still come to
// pass. It is called with mu held.
func (t *tenure) passOn() bool {
	if t.heirs == nil || t.guards > 0 || t.doubt || isClosed(t.revoked) {
		return false
	}
	give := t.heirs.Next()
	if give == nil {
		return false
	}
	t.begun = time.Now()
	give(t.newLevel())
	return true
}

// vacate tells the heirs that the tenure is over.
func (t *tenure) vacate() {
	t.mu.Lock()
	heirs := t.heirs
	t.mu.Unlock()
	if heirs != nil {
		heirs.Over()
	}
}
