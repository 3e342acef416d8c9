package page

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/inspect"
)

// The actions.
const (
	doBreak  = "break"
	doRevoke = "revoke"
)

const (
	// maxForm is how long the body of a request may be.
	maxForm = 64 << 10
	// actionTime is the time that an action may take.
	actionTime = 10 * time.Second
)

// action is what a form asks for: to break or to revoke one node of a lock.
type action struct {
	Do   string
	Path string // of the lock
	Node string // the path of the node
	ID   inspect.ID
}

// actionOf returns the action that the values of a request name.
func (p *Page) actionOf(r *http.Request) (a action, err error) {
	a = action{Do: r.FormValue("do"), Path: r.FormValue("path"), Node: r.FormValue("node")}
	a.ID, err = inspect.ParseID(r.FormValue("token"))
	switch {
	case err != nil:
		return a, err
	case a.Do != doBreak && a.Do != doRevoke:
		return a, errors.New("there is no such action")
	case !within(a.Path, p.settings.Root) || !within(a.Node, a.Path):
		return a, errors.New("the node is not below the root of this page")
	}
	return a, framework.CheckPath(a.Path)
}

func (a action) formToken(p *Page, r *http.Request) string {
	return p.formToken(r, a.Do, a.Path, a.Node, a.ID.String())
}

// find reads the lock again, and returns the node. There may be another one with its path.
func (a action) find(ctx context.Context, client *framework.Client) (inspect.Node, error) {
	if err := client.Sync(ctx, a.Path); err != nil {
		return inspect.Node{}, err
	}
	object, err := inspect.Show(ctx, client, a.Path)
	if err != nil {
		return inspect.Node{}, err
	}
	same := func(n inspect.Node) bool { return n.Path == a.Node && n.Token == a.ID }
	if at := slices.IndexFunc(object.Nodes, same); at >= 0 {
		return object.Nodes[at], nil
	}
	return inspect.Node{}, zk.ErrNoNode
}

// confirmPage asks whether to do an action, or says why it was not done.
type confirmPage struct {
	layout
	Action    action
	FormToken string
	Node      inspect.Node
	Refused   string // why the action is not done; "": it is to be confirmed
	Unknown   bool   // the action may have been applied, or may still be
}

func (p *Page) confirm(w http.ResponseWriter, r *http.Request) {
	a, err := p.actionOf(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), actionTime)
	defer cancel()
	node, err := a.find(ctx, p.client)
	if err == nil && a.Do == doRevoke && !node.Participant().Revocable() {
		err = framework.ErrInvalidPath
	}
	if err != nil {
		p.refuse(w, r, a, err, false)
		return
	}
	p.render(w, http.StatusOK, "confirm", confirmPage{
		layout: p.layout(r, titles[a.Do], "locks"), Action: a, FormToken: a.formToken(p, r), Node: node,
	})
}

var titles = map[string]string{doBreak: "Break a lock", doRevoke: "Ask for a release"}

func (p *Page) act(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "the form cannot be read", http.StatusBadRequest)
		return
	}
	a, err := p.actionOf(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if !hmacEqual(r.PostFormValue("form"), a.formToken(p, r)) {
		http.Error(w, "the form is not of this page, or older than the page: go back and load it again",
			http.StatusForbidden)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), actionTime)
	defer cancel()
	node, err := a.find(ctx, p.client)
	tried := err == nil
	switch {
	case !tried:
	case a.Do == doBreak:
		_, err = inspect.Break(ctx, p.client, node)
	default:
		err = recipes.Revoke(ctx, p.client, node.Participant())
	}
	p.settings.Log.Info(titles[a.Do], "node", a.Node, "token", a.ID.String(), "participant", nameOf(&node),
		"user", userOf(r), "address", r.RemoteAddr, "error", err)
	if err != nil {
		p.refuse(w, r, a, err, tried && framework.OutcomeOf(err) == framework.Unknown)
		return
	}
	// By hand, because http.Redirect makes the address absolute, and a proxy may have the page elsewhere.
	w.Header().Set("Location", "lock?"+url.Values{"path": {a.Path}, "done": {a.Do}}.Encode())
	w.WriteHeader(http.StatusSeeOther)
}

// refuse says why an action is not done.
func (p *Page) refuse(w http.ResponseWriter, r *http.Request, a action, err error, unknown bool) {
	status, text := http.StatusBadGateway, err.Error()
	switch {
	case unknown:
	case errors.Is(err, zk.ErrNoNode):
		status, text = http.StatusConflict, "This node does not exist any more."
	case errors.Is(err, framework.ErrInvalidPath):
		status, text = http.StatusConflict, "This is not a node that can be asked or broken."
	case errors.Is(err, zk.ErrNoAuth):
		status, text = http.StatusForbidden, "The servers refuse the permission."
	}
	p.render(w, status, "confirm", confirmPage{
		layout: p.layout(r, titles[a.Do], "locks"), Action: a, Refused: text, Unknown: unknown,
	})
}
