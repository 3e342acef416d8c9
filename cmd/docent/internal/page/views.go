package page

import (
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docent-zk/docent/recipes/inspect"
)

// functions returns the functions of the templates.
func (p *Page) functions() template.FuncMap {
	return template.FuncMap{
		"age":     func(now, since time.Time) string { return age(now.Sub(since)) },
		"millis":  func(t time.Time) int64 { return t.UnixMilli() },
		"instant": func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"name": func(n any) string {
			if node, is := n.(inspect.Node); is {
				return nameOf(&node)
			}
			return nameOf(n.(*inspect.Node))
		},
		"words":   func(text any) string { return strings.ReplaceAll(fmt.Sprint(text), "-", " ") },
		"warning": func(w inspect.Warning) string { return warnings[w] },
		"base":    func(path string) string { return path[strings.LastIndexByte(path, '/')+1:] },
		"number":  thousands,
		"inc":     func(n int) int { return n + 1 },
		"value":   func(n *int64) int64 { return *n },
		"places":  listOf,
	}
}

// age returns a duration as people say it, with at most two units. The script of the page has the same
// function.
func age(d time.Duration) string {
	s := int64(max(0, d) / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm %ds", s/60, s%60)
	case s < 86400:
		return fmt.Sprintf("%dh %dm", s/3600, s%3600/60)
	}
	return fmt.Sprintf("%dd %dh", s/86400, s%86400/3600)
}

// thousands returns a number with commas.
func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// compareOldest orders times, the earlier first and the zero Time, which is none, last.
func compareOldest(a, b time.Time) int {
	switch {
	case a.IsZero() && b.IsZero():
		return 0
	case a.IsZero():
		return 1
	case b.IsZero():
		return -1
	}
	return a.Compare(b)
}

// maxName is how long the name of a participant is shown.
const maxName = 80

// nameOf returns what is known of the participant with a node: process and host, id, or data.
func nameOf(n *inspect.Node) string {
	name := n.Data
	switch {
	case n.Process != "":
		name = fmt.Sprintf("%s[%d] on %s", n.Process, n.PID, n.Host)
	case n.ID != "" && n.Host != "":
		name = n.ID + " on " + n.Host
	case n.ID != "":
		name = n.ID
	case n.Host != "":
		name = n.Host
	}
	if runes := []rune(name); len(runes) > maxName {
		name = string(runes[:maxName]) + "…"
	}
	return name
}

// warnings are what warnings mean.
var warnings = map[inspect.Warning]string{
	inspect.WarnForeign: "The directory has children that are not of the queue. Curator counts them, and may wait " +
		"for them for good.",
	inspect.WarnMixedRecipes: "Nodes of two recipes that do not exclude each other are in one directory.",
	inspect.WarnMixedLayouts: "Nodes with the names of Curator and of kazoo are in one queue.",
	inspect.WarnPersistent:   "A node belongs to no session, so no end of a session deletes it.",
	inspect.WarnSequence:     "The sequence numbers are beyond half of their range.",
	inspect.WarnOverLimit:    "More permits are held than the limit allows.",
}

type lockPage struct {
	layout
	Path      string
	Lock      lockRow
	There     bool
	Broken    bool            // its nodes can be broken and asked
	Deadlocks []inspect.Cycle // of which the lock is a part
	Problem   string
}

// notices are what is shown after an action.
var notices = map[string]string{
	doBreak:  "The node is deleted. The next waiter holds the lock.",
	doRevoke: "The holder is asked to release the lock.",
}

func (p *Page) showLock(w http.ResponseWriter, r *http.Request) {
	path := r.FormValue("path")
	l := p.layout(r, path, "locks")
	l.Notice = notices[r.FormValue("done")]
	page := lockPage{layout: l, Path: path}
	i, ok := l.picture.find(path)
	switch {
	case ok && i.problem != nil:
		page.Problem = i.problem.Error()
	case ok:
		page.Lock, page.There, page.Broken = lockRow{item: i}, true, p.settings.Write && isLock(i.Kind)
		page.Lock.Handovers, page.Lock.Counts = l.picture.handoversOf(i.Object)
	}
	for _, c := range l.picture.cycles {
		if slices.ContainsFunc(c, func(s inspect.Step) bool { return s.Path == path }) {
			page.Deadlocks = append(page.Deadlocks, c)
		}
	}
	status := http.StatusOK
	if !ok && !l.Read.IsZero() {
		status = http.StatusNotFound
	}
	p.render(w, status, "lock", page)
}

type sessionRow struct {
	*inspect.SessionView
	Name string
}

type sessionsPage struct {
	layout
	Filter filter
	Pager  pager
	Rows   []sessionRow
}

func (p *Page) showSessions(w http.ResponseWriter, r *http.Request) {
	l := p.layout(r, "Sessions", "sessions")
	f := filterOf(r)
	words := strings.Fields(strings.ToLower(f.Words))
	var rows []sessionRow
	for _, view := range l.picture.sessions() {
		row := sessionRow{view, nameOfSession(view)}
		text := strings.ToLower(view.Session.String() + " " + row.Name)
		if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) }) {
			rows = append(rows, row)
		}
	}
	shown, pager := part(rows, f.Page, f.To)
	p.render(w, http.StatusOK, "sessions", sessionsPage{l, f, pager, shown})
}

// nameOfSession returns the name in one of a session's nodes: that of a process if there is one.
func nameOfSession(view *inspect.SessionView) (name string) {
	for _, place := range slices.Concat(view.Holds, view.Waits, view.Members) {
		if place.Node.Process != "" {
			return nameOf(&place.Node)
		}
		if name == "" {
			name = nameOf(&place.Node)
		}
	}
	return name
}

type sessionPage struct {
	layout
	Session inspect.ID
	Row     sessionRow
	There   bool
}

func (p *Page) showSession(w http.ResponseWriter, r *http.Request) {
	id, err := inspect.ParseID(r.FormValue("id"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	page := sessionPage{layout: p.layout(r, "Session "+id.String(), "sessions"), Session: id}
	all := page.picture.sessions()
	status := http.StatusNotFound
	if at := slices.IndexFunc(all, func(v *inspect.SessionView) bool { return v.Session == id }); at >= 0 {
		page.Row, page.There, status = sessionRow{all[at], nameOfSession(all[at])}, true, http.StatusOK
	} else if page.Read.IsZero() {
		status = http.StatusOK
	}
	p.render(w, status, "session", page)
}

type deadlocksPage struct {
	layout
	All []inspect.Cycle
}

func (p *Page) showDeadlocks(w http.ResponseWriter, r *http.Request) {
	l := p.layout(r, "Deadlocks", "deadlocks")
	p.render(w, http.StatusOK, "deadlocks", deadlocksPage{l, l.picture.cycles})
}

// maxPlaces is how many nodes of a session are shown.
const maxPlaces = 500

// placeList is the nodes of a session that hold, or that wait.
type placeList struct {
	Now    time.Time
	Places []inspect.Place
	Left   int
}

func listOf(now time.Time, places []inspect.Place) placeList {
	shown := places[:min(len(places), maxPlaces)]
	return placeList{now, shown, len(places) - len(shown)}
}
