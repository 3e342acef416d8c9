package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/group"
	"github.com/docent-zk/docent/recipes/persistent"
)

// Where the nodes are that workers keep, and the members of their group.
const (
	keptPath  = "/kept"
	groupPath = "/members"
)

// Kinds of nodes that a worker keeps, one of each kind.
const (
	fixedNode    = "fixed"
	numberedNode = "numbered"
	memberNode   = "member"
)

var keptKinds = []string{fixedNode, numberedNode, memberNode}

// pending returns the error of a close while the deletion of a node of the kind goes on.
func pending(kind string) error {
	if kind == memberNode {
		return group.ErrPending
	}
	return persistent.ErrPending
}

// keptName returns the name of a worker's node, in front of the number if it has one.
func keptName(kind, worker string) string {
	if kind == memberNode {
		return worker
	}
	return kind + "-" + worker
}

// isKept reports whether a node with this path is of the kind and of the worker.
func isKept(node, kind, worker string) bool {
	switch kind {
	case fixedNode:
		return node == keptPath+"/"+keptName(kind, worker)
	case memberNode:
		return node == groupPath+"/"+worker
	}
	return strings.HasPrefix(node, keptPath+"/_c_") && strings.Contains(node, "-"+keptName(kind, worker)+"-")
}

// kept is a node that a worker keeps: a persistent.Node, or a membership.
type kept interface {
	SetData(data []byte) error
	WaitReady(ctx context.Context) error
	Err() error
	Close() error
}

type member struct{ *group.Membership }

func (m member) SetData(data []byte) error { return m.SetPayload(data) }

// keep makes a node of a kind. It waits for a node that an earlier process has left, however long the
// servers need to expire its session.
func keep(ctx context.Context, c *framework.Client, kind, worker string, data []byte) (kept, error) {
	if kind == memberNode {
		m, err := group.Join(ctx, c, groupPath, worker, data, group.WithWait(persistent.NoLimit))
		return member{m}, err
	}
	path := keptPath + "/" + keptName(kind, worker)
	opts := []persistent.Option{persistent.WithOccupiedTimeout(persistent.NoLimit)}
	if kind == numberedNode {
		path, opts = path+"-", append(opts, persistent.WithSequence())
	}
	n, err := persistent.New(c, path, data, opts...)
	if err != nil {
		return nil, err
	}
	return n, n.Start(context.Background())
}

// registration is a node that a worker keeps, closes, and keeps again. One goroutine at a time
// changes it.
type registration struct {
	client       *framework.Client
	kind, worker string
	random       *rand.Rand // of churn

	mu   sync.Mutex
	node kept // nil: closed, or not open yet
	keptReport
}

// keptReport is what a worker tells of a node that it keeps.
type keptReport struct {
	Kind, Worker string
	Closed       bool   `json:",omitempty"`
	Data         string // that was set last
	There        bool   `json:",omitempty"` // WaitReady has returned nil
	Err          string `json:",omitempty"`
}

func newRegistration(w *worker, kind string) *registration {
	return &registration{client: w.client, kind: kind, worker: w.Name, random: another(w.random),
		keptReport: keptReport{Kind: kind, Worker: w.Name, Closed: true}}
}

// note notes what the program wants, and returns the node.
func (r *registration) note(closed bool, data string) kept {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Closed, r.Data = closed, data
	return r.node
}

func (r *registration) setNode(node kept) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.node = node
}

// report returns the state of the registration. It waits for a moment until the node is there.
func (r *registration) report(ctx context.Context) keptReport {
	r.mu.Lock()
	node, report := r.node, r.keptReport
	r.mu.Unlock()
	if node != nil {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		report.There = node.WaitReady(ctx) == nil
		if err := node.Err(); err != nil {
			report.Err = err.Error()
		}
	}
	return report
}

// open keeps the node. Nothing is kept after an error.
func (r *registration) open(ctx context.Context, data string) error {
	r.note(false, data)
	node, err := keep(ctx, r.client, r.kind, r.worker, []byte(data))
	if err != nil {
		r.note(true, "")
		return err
	}
	r.setNode(node)
	return nil
}

func (r *registration) set(data string) error {
	return r.note(false, data).SetData([]byte(data))
}

// close closes the node. The deletion may go on in the background.
func (r *registration) close() error {
	node := r.note(true, "")
	if node == nil {
		return nil
	}
	r.setNode(nil)
	return node.Close()
}

// isOpen reports whether the node is kept.
func (r *registration) isOpen() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.node != nil
}

// churn sets the data of the node, closes it and keeps it again, until over is closed.
func (r *registration) churn(ctx context.Context, over <-chan struct{}) error {
	for {
		select {
		case <-over:
			return nil
		case <-time.After(below(r.random, 4*time.Second)): // the workload
		}
		data := fmt.Sprintf("%s %s %d", r.kind, r.worker, now())
		switch {
		case !r.isOpen():
			joining, cancel := context.WithTimeout(ctx, below(r.random, 4*time.Second))
			err := r.open(joining, data)
			cancel()
			if !isExpected(err) {
				return err
			}
		case r.random.IntN(4) == 0:
			if err := r.close(); err != nil && !errors.Is(err, persistent.ErrPending) {
				return err
			}
		default:
			if err := r.set(data); err != nil {
				return err
			}
		}
	}
}

// groupView is what a worker knows of the group by group.Observe.
type groupView struct {
	mu      sync.Mutex
	members map[string]group.Member
	newest  map[string]int64 // the largest token of an id
	wrong   []string
}

func newGroupView() *groupView {
	return &groupView{members: map[string]group.Member{}, newest: map[string]int64{}}
}

// groupReport is what a worker tells of a group.
type groupReport struct {
	Members map[string]string // payloads by id
	Tokens  map[string]int64
	Wrong   []string
}

// follow follows the group until ctx ends.
func (v *groupView) follow(ctx context.Context, c *framework.Client) {
	for ch, err := range group.Observe(ctx, c, groupPath) {
		v.note(ch, err)
	}
}

// note checks that a change follows those before.
func (v *groupView) note(ch group.Change, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err != nil {
		if !isExpected(err) {
			v.wrong = append(v.wrong, err.Error())
		}
		return
	}
	before, there := v.members[ch.Member.ID]
	same := there && before.Token == ch.Member.Token
	ok := false
	switch ch.Kind {
	case group.Added:
		ok = !there && ch.Member.Token > v.newest[ch.Member.ID]
		v.members[ch.Member.ID] = ch.Member
		v.newest[ch.Member.ID] = ch.Member.Token
	case group.Changed:
		ok = same && string(before.Payload) != string(ch.Member.Payload)
		v.members[ch.Member.ID] = ch.Member
	case group.Removed:
		ok = same
		delete(v.members, ch.Member.ID)
	}
	if !ok {
		v.wrong = append(v.wrong, fmt.Sprintf("%v of %+v, known before: %t %+v", ch, ch.Member, there, before))
	}
}

func (v *groupView) report() *groupReport {
	v.mu.Lock()
	defer v.mu.Unlock()
	r := &groupReport{Members: map[string]string{}, Tokens: map[string]int64{}, Wrong: v.wrong}
	for id, m := range v.members {
		r.Members[id], r.Tokens[id] = string(m.Payload), m.Token
	}
	return r
}

func TestViewOfAGroupFindsWhatMustNotBe(t *testing.T) {
	change := func(kind group.Kind, token int64, payload string) group.Change {
		return group.Change{Kind: kind, Member: group.Member{ID: "a", Token: token, Payload: []byte(payload)}}
	}
	added, changed, removed := change(group.Added, 1, "x"), change(group.Changed, 1, "y"), change(group.Removed, 1, "y")
	for name, example := range map[string]struct {
		changes []group.Change
		right   bool
	}{
		"a history":          {[]group.Change{added, changed, removed, change(group.Added, 2, "z")}, true},
		"twice":              {[]group.Change{added, added}, false},
		"again":              {[]group.Change{added, removed, added}, false},
		"not there":          {[]group.Change{changed}, false},
		"nothing changed":    {[]group.Change{added, change(group.Changed, 1, "x")}, false},
		"of another":         {[]group.Change{added, change(group.Changed, 2, "y")}, false},
		"removed twice":      {[]group.Change{added, removed, removed}, false},
		"another is removed": {[]group.Change{added, change(group.Removed, 2, "x")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			v := newGroupView()
			for _, c := range example.changes {
				v.note(c, nil)
			}
			v.note(group.Change{}, context.Canceled)
			require.Equal(t, example.right, len(v.report().Wrong) == 0, v.report().Wrong)
		})
	}
	v := newGroupView()
	v.note(group.Change{}, errors.New("unexpected"))
	require.NotEmpty(t, v.report().Wrong)

	v = newGroupView()
	v.note(added, nil)
	node := func(czxid int64, data string) map[string]nodeOnServer {
		return map[string]nodeOnServer{groupPath + "/a": {groupPath + "/a", &zk.Stat{Czxid: czxid}, []byte(data)}}
	}
	require.Empty(t, v.report().differences(node(1, "x")))
	for _, other := range []map[string]nodeOnServer{nil, node(1, "y"), node(2, "x")} {
		require.NotEmpty(t, v.report().differences(other))
	}
}
