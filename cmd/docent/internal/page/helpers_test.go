package page

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/mutex"
)

// site is a page with its root, which is a node that no other test uses.
type site struct {
	t      testing.TB
	page   *Page
	client *framework.Client
	root   string
	log    *logBuffer
}

type logBuffer struct {
	mu      sync.Mutex
	content bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.content.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.content.String()
}

// newSite returns a page with a client. change changes its settings.
func newSite(t testing.TB, client *framework.Client, change func(*Settings)) *site {
	t.Helper()
	s := &site{t: t, client: client, root: testzk.Path(t), log: &logBuffer{}}
	settings := Settings{
		Root: s.root, Interval: 10 * time.Millisecond, Log: slog.New(slog.NewTextHandler(s.log, nil)),
	}
	if change != nil {
		change(&settings)
	}
	s.root = settings.Root
	var err error
	s.page, err = New(client, settings)
	require.NoError(t, err)
	t.Cleanup(s.page.Close)
	s.page.tree.hurry()
	return s
}

func connected(t testing.TB, opts ...framework.Option) *framework.Client {
	t.Helper()
	return testzk.Connected(t, testzk.Connect(), opts...)
}

// get requests an address.
func (s *site) get(address string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	s.t.Helper()
	return s.request(httptest.NewRequest(http.MethodGet, address, nil), change...)
}

func (s *site) post(address string, form url.Values, change ...func(*http.Request)) *httptest.ResponseRecorder {
	s.t.Helper()
	r := httptest.NewRequest(http.MethodPost, address, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return s.request(r, change...)
}

func (s *site) request(r *http.Request, change ...func(*http.Request)) *httptest.ResponseRecorder {
	s.t.Helper()
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	s.page.ServeHTTP(w, r.WithContext(testzk.Context(s.t)))
	return w
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

// shows waits until a page shows a text.
func (s *site) shows(address, text string) string {
	s.t.Helper()
	var body string
	testzk.Eventually(s.t, func() bool {
		body = s.get(address).Body.String()
		return strings.Contains(body, text)
	}, "%s does not show %q", address, text)
	return body
}

// hides waits until a page does not show a text any more.
func (s *site) hides(address, text string) {
	s.t.Helper()
	testzk.Eventually(s.t, func() bool { return !strings.Contains(s.get(address).Body.String(), text) },
		"%s shows %q", address, text)
}

func newMutex(t testing.TB, c *framework.Client, path string, opts ...mutex.Option) *mutex.Mutex {
	t.Helper()
	mu, err := mutex.New(c, path, opts...)
	require.NoError(t, err)
	return mu
}

func create(t testing.TB, c *framework.Client, path, data string, opts ...framework.CreateOption) {
	t.Helper()
	_, err := c.Create(t.Context(), path, []byte(data), append(opts, framework.Parents())...)
	require.NoError(t, err, path)
}

// served returns a started server of the page. configure changes it before. It is closed when the
// test ends, and after the streams that streamOf has opened: Close waits for them.
func (s *site) served(configure func(*http.Server)) *httptest.Server {
	s.t.Helper()
	server := httptest.NewUnstartedServer(s.page)
	if configure != nil {
		configure(server.Config)
	}
	server.Start()
	s.t.Cleanup(server.Close)
	return server
}

// streamOf opens the stream of events of a page on a server. stop ends it.
func streamOf(t testing.TB, server *httptest.Server) (lines *bufio.Reader, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(testzk.Context(t))
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/events", nil)
	require.NoError(t, err)
	answer, err := server.Client().Do(r)
	require.NoError(t, err)
	require.Equal(t, "text/event-stream", answer.Header.Get("Content-Type"))
	stop = func() {
		cancel()
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
	}
	t.Cleanup(stop)
	return bufio.NewReader(answer.Body), stop
}

// nextVersion reads a stream until it tells a version.
func nextVersion(t testing.TB, lines *bufio.Reader) string {
	t.Helper()
	for {
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		if version, is := strings.CutPrefix(line, "data: "); is {
			return strings.TrimSpace(version)
		}
	}
}
