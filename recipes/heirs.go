package recipes

import "time"

// Heirs are those to whom a lock node goes when its hold is released, instead of being deleted. Each of them has a hold, and
// levels, of its own. It is for recipes, and nothing for programs to implement.
type Heirs interface {
	// Next is given the next hold of the node when one is over, and says what has become of it. It must not block, nor end the hold
	// before it has returned.
	Next(h *Hold) Heir
	// Wanted hears, once at most, that somebody asks for the node back: from then on Next is not called. It must not block.
	Wanted()
	// Over hears, once, that there will be no further hold of the node: it is deleted, or being deleted, or was lost.
	Over()
}

// Heir is who has the next hold of a node. It is for recipes.
type Heir int

const (
	Nobody Heir = iota // and so the node is given up
	Successor
	Keeper // who only keeps the node for others: its hold is not measured, and nobody is told when it is lost
)

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
	level := t.newLevel()
	heir := t.heirs.Next(level)
	if heir == Nobody {
		delete(t.levels, level)
		return false
	}
	t.begun, t.idle = time.Now(), heir == Keeper
	return true
}

// vacate tells the heirs that the tenure is over.
func (t *tenure) vacate() { t.toHeirs(Heirs.Over) }

func (t *tenure) toHeirs(tell func(Heirs)) {
	t.mu.Lock()
	heirs := t.heirs
	t.mu.Unlock()
	if heirs != nil {
		tell(heirs)
	}
}
