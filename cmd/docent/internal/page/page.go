// Package page is the operators' page of docent serve: the locks below a node with their holders and
// waiters, the sessions and the deadlocks, as HTML that follows changes, and as metrics.
package page

import (
	"bytes"
	"context"
	"crypto/rand"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/docent-zk/docent/framework"
)

//go:embed assets
var assets embed.FS

//go:embed templates
var templates embed.FS

// Settings are what a Page shows and permits.
type Settings struct {
	// Root is the node below which locks are shown. It need not exist.
	Root string
	// Interval is the time between the begins of two readings, at least.
	Interval time.Duration
	// Always keeps the picture current while no client looks at it.
	Always bool
	// Write permits to ask holders for a release, and to break locks.
	Write bool
	// Hosts are the names by which requests may address the page. None: any.
	Hosts []string
	// Token is what requests must have as a bearer token or as the password of basic authentication.
	// "": nothing.
	Token string
	// TrustHeader is the name of a header that a reverse proxy sets to the name of the user. Requests
	// without it are refused. "": none.
	TrustHeader string
	// Log receives what requests have changed. It is not nil.
	Log *slog.Logger
}

// Page serves the page. It is an http.Handler.
type Page struct {
	settings Settings
	client   *framework.Client
	tree     *tree
	handler  http.Handler
	views    *template.Template
	key      []byte // of the tokens of forms
	closed   chan struct{}
	once     sync.Once
	started  time.Time
}

// New returns a Page for a client. It makes no request before a client looks at the page, unless
// Settings.Always. Close ends it.
func New(client *framework.Client, s Settings) (*Page, error) {
	switch {
	case client == nil:
		return nil, errors.New("page: client is nil")
	case s.Log == nil:
		return nil, errors.New("page: logger is nil")
	case s.Interval <= 0:
		return nil, fmt.Errorf("page: interval %v is not positive", s.Interval)
	}
	if err := framework.CheckPath(s.Root); err != nil {
		return nil, fmt.Errorf("page: %w", err)
	}
	p := &Page{
		settings: s, client: client, key: make([]byte, 32), closed: make(chan struct{}), started: time.Now(),
	}
	_, _ = rand.Read(p.key) // never an error
	views, err := template.New("").Funcs(p.functions()).ParseFS(templates, "templates/*.html")
	if err != nil {
		return nil, fmt.Errorf("page: %w", err)
	}
	p.views = views
	p.handler = p.guarded(p.routes())
	p.tree = startTree(client, s.Root, s.Interval, s.Always)
	return p, nil
}

// Close ends the streams of the page, and what it does in the background. Requests after that are
// answered with what was known before.
func (p *Page) Close() {
	p.once.Do(func() { close(p.closed) })
	p.tree.close()
}

// ServeHTTP implements http.Handler.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.handler.ServeHTTP(w, r) }

// routes returns the handler of all addresses. All pages are in one directory, so that their links
// are relative, and a proxy can have them below any path.
func (p *Page) routes() http.Handler {
	static, _ := fs.Sub(assets, "assets") // never an error
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", p.showLocks)
	mux.HandleFunc("GET /lock", p.showLock)
	mux.HandleFunc("GET /sessions", p.showSessions)
	mux.HandleFunc("GET /session", p.showSession)
	mux.HandleFunc("GET /deadlocks", p.showDeadlocks)
	mux.HandleFunc("GET /events", p.stream)
	mux.HandleFunc("GET /metrics", p.metrics)
	mux.HandleFunc("GET /healthz", alive)
	mux.HandleFunc("GET /readyz", p.ready)
	mux.Handle("GET /assets/", http.StripPrefix("/assets/", http.FileServerFS(static)))
	if p.settings.Write {
		mux.HandleFunc("GET /confirm", p.confirm)
		mux.HandleFunc("POST /act", p.act)
	}
	return mux
}

// firstLook is for how long a page waits for a picture. Then it is shown without, and follows.
const firstLook = 700 * time.Millisecond

// layout is what all pages show.
type layout struct {
	Title    string
	Tab      string // the entry of the navigation
	Root     string
	Write    bool
	Version  int64
	Now      time.Time
	Read     time.Time // zero: never
	Failure  string
	Old      bool // the picture is of an earlier time, and another one is being read
	Sessions int
	Cycles   int
	Notice   string
	picture  *picture
}

// layout returns the layout of a page, with the present picture.
func (p *Page) layout(r *http.Request, title, tab string) layout {
	now, live := p.tree.current(r.Context(), firstLook)
	l := layout{
		Title: title, Tab: tab, Root: p.settings.Root, Write: p.settings.Write, Version: now.version,
		Now: time.Now(), Read: now.read, Sessions: now.totals.sessions,
		Cycles: len(now.cycles), picture: now, Old: !live && !now.read.IsZero(),
	}
	switch state := p.client.State(); {
	case !state.IsConnected() && now.version > 0:
		l.Failure = "the connection is " + state.String()
	case now.err != nil:
		l.Failure = now.err.Error()
	}
	return l
}

// render writes a page. Nothing is written before the whole page is there.
func (p *Page) render(w http.ResponseWriter, status int, name string, data any) {
	var content bytes.Buffer
	if err := p.views.ExecuteTemplate(&content, name, data); err != nil {
		p.settings.Log.Error("page", "name", name, "error", err)
		http.Error(w, "the page cannot be shown", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = content.WriteTo(w)
}

// alive answers while the process can answer. It does not ask the client.
func alive(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "alive\n") }

// ready answers 200 while the ZooKeeper leader answers the client, and 503 otherwise. It makes no
// request to the servers.
func (p *Page) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), time.Second)
	defer cancel()
	session, err := p.client.Session(ctx)
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	case time.Until(session.ValidUntil()) < session.Timeout()/3:
		http.Error(w, "the servers do not answer", http.StatusServiceUnavailable)
	default:
		_, _ = io.WriteString(w, "ready\n")
	}
}
