package page

import (
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/docent-zk/docent/recipes/inspect"
)

// BenchmarkPicture measures what a change of one lock of 10,000 costs beside its reading: another
// picture, and the page for one viewer.
func BenchmarkPicture(b *testing.B) {
	items := make([]item, 10_000)
	for i := range items {
		path := fmt.Sprintf("/locks/%05d", i)
		n := inspect.Node{
			Path: path + "/lock-0000000001", Holds: true, Session: inspect.ID(i), Token: 7, Since: time.Now(),
		}
		items[i] = newItem(&inspect.Object{
			Path: path, Kind: inspect.KindMutex, State: inspect.StateHeld, Holders: 1, Nodes: []inspect.Node{n},
		}, nil)
	}
	b.Run("picture", func(b *testing.B) {
		for b.Loop() {
			p := &picture{root: "/locks", items: replaced(items, "/locks/05000", items[5000:5001])}
			p.cycles = inspect.Cycles(objectsOf(p.items))
			p.count()
		}
	})
	b.Run("page", func(b *testing.B) {
		s := newSite(b, connected(b), nil)
		p := &picture{root: "/locks", items: items, read: time.Now(), counting: time.Now()}
		p.count()
		s.page.tree.mu.Lock()
		s.page.tree.publishLocked(p)
		s.page.tree.live = true
		s.page.tree.mu.Unlock()
		for b.Loop() {
			s.page.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
		}
	})
}
