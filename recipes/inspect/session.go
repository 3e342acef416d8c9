package inspect

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/docent-zk/docent/framework"
)

// Place is a node of a session in an object.
type Place struct {
	Path string `json:"path"` // of the object
	Kind Kind   `json:"kind"`
	Node Node   `json:"node"`
}

// SessionView is what a session holds and waits for, as the nodes show it.
type SessionView struct {
	Session ID      `json:"session"`
	Holds   []Place `json:"holds,omitempty"`   // locks, permits and leaderships
	Waits   []Place `json:"waits,omitempty"`   // in queues, conditions and barriers
	Members []Place `json:"members,omitempty"` // of groups, services and others that exclude none
	// Unread is the number of nodes that could not be looked at: those beyond WithMaxNodes, and those
	// that the client may not read.
	Unread int `json:"unread,omitempty"`
}

// Session returns what a session holds and waits for at and below root. It is a Walk, because servers
// list the nodes of a session only to that session. It is no error that there are none, or no such
// session. It fails as Walk does.
func Session(
	ctx context.Context, client *framework.Client, root string, id ID, opts ...Option,
) (*SessionView, error) {
	all, err := sessions(Walk(ctx, client, root, opts...), func(of ID) bool { return of == id })
	if err != nil {
		return nil, err
	}
	view := &SessionView{Session: id, Unread: all.unread}
	if known := all.views[id]; known != nil {
		view.Holds, view.Waits, view.Members = known.Holds, known.Waits, known.Members
	}
	return view, nil
}

// Sessions returns what each session holds and waits for in objects, by the ids of the sessions.
// Unread is the same in all of them.
func Sessions(objects []*Object) []*SessionView {
	all, _ := sessions(sequence(objects), func(ID) bool { return true })
	views := make([]*SessionView, 0, len(all.views))
	for _, view := range all.views {
		view.Unread = all.unread
		views = append(views, view)
	}
	slices.SortFunc(views, func(a, b *SessionView) int { return cmp.Compare(uint64(a.Session), uint64(b.Session)) })
	return views
}

func sequence(objects []*Object) iter.Seq2[*Object, error] {
	return func(yield func(*Object, error) bool) {
		for _, o := range objects {
			if o != nil && !yield(o, nil) {
				return
			}
		}
	}
}

// sessionViews are the views of some sessions.
type sessionViews struct {
	views  map[ID]*SessionView
	unread int
}

// sessions returns the views of the sessions that want selects.
func sessions(objects iter.Seq2[*Object, error], want func(ID) bool) (*sessionViews, error) {
	all := &sessionViews{views: map[ID]*SessionView{}}
	for o, err := range objects {
		switch {
		case o == nil:
			return nil, err
		case err != nil:
			all.unread++
			continue
		}
		all.unread += o.Unread
		for _, n := range o.Nodes {
			switch {
			case n.Session == 0 && n.Err != "":
				all.unread++
			case n.Session != 0 && want(n.Session):
				all.add(Place{o.Path, o.Kind, n})
			}
		}
	}
	return all, nil
}

func (s *sessionViews) add(p Place) {
	view := s.views[p.Node.Session]
	if view == nil {
		view = &SessionView{Session: p.Node.Session}
		s.views[p.Node.Session] = view
	}
	list := &view.Waits
	switch {
	case p.Node.Holds && slices.Contains([]Role{RoleMember, RoleInstance, RoleUpdater}, p.Node.Role):
		list = &view.Members
	case p.Node.Holds:
		list = &view.Holds
	}
	*list = append(*list, p)
}
