package page

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/inspect"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/recipes/semaphore"
)

func TestWrongSettingsAreRefused(t *testing.T) {
	t.Parallel()
	log := newSite(t, connected(t), nil).page.settings.Log
	for name, test := range map[string]struct {
		client   *framework.Client
		settings Settings
		want     string
	}{
		"client":   {nil, Settings{Root: "/", Interval: 1, Log: log}, "page: client is nil"},
		"logger":   {connected(t), Settings{Root: "/", Interval: 1}, "page: logger is nil"},
		"interval": {connected(t), Settings{Root: "/", Log: log}, "page: interval 0s is not positive"},
		"root":     {connected(t), Settings{Root: "a", Interval: 1, Log: log}, `page: framework: invalid path "a"`},
	} {
		_, err := New(test.client, test.settings)
		assert.ErrorContains(t, err, test.want, name)
	}
}

func TestAPageShowsHoldersAndWaiters(t *testing.T) {
	t.Parallel()
	s := newSite(t, connected(t), nil)
	holder, waiter := connected(t), connected(t)
	worker := mutex.WithData([]byte(`{"host":"h1","process":"billing","pid":7}`))
	hold := testlock.Held(t, newMutex(t, holder, s.root+"/orders", worker))
	testlock.Queue(t, newMutex(t, waiter, s.root+"/orders", mutex.WithData([]byte("10.0.0.9"))))
	list := s.shows("/", `<td role="cell" data-label="Waiters" class="n">1</td>`)
	assert.Contains(t, list, ">billing[7] on h1<")
	assert.Contains(t, list, `<span class="badge waited-for">waited for</span>`)
	assert.Contains(t, list, "/orders</a>")

	lock := s.get("/lock?path=" + s.root + "/orders").Body.String()
	for _, body := range []string{list, lock, s.get("/sessions").Body.String(), s.get("/deadlocks").Body.String()} {
		assert.NotRegexp(t, `(href|src|action)="/`, body, "a proxy may have the page below another path")
	}
	assert.Contains(t, lock, "billing[7] on h1")
	assert.Contains(t, lock, "10.0.0.9")
	assert.Contains(t, lock, fmt.Sprintf("<code>%#x</code>", hold.Token()))
	assert.NotContains(t, lock, "confirm?", "a page without --write has no forms")

	session, err := holder.Session(t.Context())
	require.NoError(t, err)
	id := inspect.ID(session.ID()).String()
	assert.Contains(t, lock, id)
	assert.Contains(t, s.get("/sessions").Body.String(), id)
	one := s.get("/session?id=" + id)
	assert.Equal(t, http.StatusOK, one.Code)
	assert.Contains(t, one.Body.String(), s.root+"/orders</a>")
	assert.Equal(t, http.StatusNotFound, s.get("/session?id=0x1").Code)
	assert.Equal(t, http.StatusBadRequest, s.get("/session?id=x").Code)

	require.NoError(t, hold.Release())
	s.hides("/lock?path="+s.root+"/orders", "billing")
	assert.Equal(t, http.StatusNotFound, s.get("/lock?path="+s.root+"/none").Code)
}

func TestARootThatDoesNotExistIsFollowed(t *testing.T) {
	t.Parallel()
	client := connected(t)
	s := newSite(t, client, nil)
	s.shows("/", "There is no node "+s.root)
	testlock.Held(t, newMutex(t, client, s.root+"/later"))
	s.shows("/", s.root+"/later</a>")
}

func TestTheRootCanBeALockItself(t *testing.T) {
	t.Parallel()
	client := connected(t)
	s := newSite(t, client, nil)
	s.shows("/", "There is no node")
	hold := testlock.Held(t, newMutex(t, client, s.root))
	s.shows("/", fmt.Sprintf(`data-key="%s"`, s.root))
	require.NoError(t, hold.Release())
	s.hides("/", fmt.Sprintf(`data-key="%s"`, s.root))
}

func TestADeadlockIsShown(t *testing.T) {
	t.Parallel()
	a, b := connected(t), connected(t)
	s := newSite(t, connected(t), nil)
	s.shows("/deadlocks", "There is no deadlock.")
	testlock.Held(t, newMutex(t, a, s.root+"/one"))
	testlock.Held(t, newMutex(t, b, s.root+"/two"))
	testlock.Queue(t, newMutex(t, a, s.root+"/two"))
	testlock.Queue(t, newMutex(t, b, s.root+"/one"))
	all := s.shows("/deadlocks", "2 sessions")
	assert.Contains(t, all, s.root+"/one</a>")
	assert.Contains(t, all, s.root+"/two</a>")
	assert.Contains(t, s.get("/lock?path="+s.root+"/two").Body.String(), "<h2>Deadlock</h2>")
	for _, address := range []string{"/", "/lock?path=" + s.root + "/two", "/sessions"} {
		assert.Contains(t, s.get(address).Body.String(), `<span class="count alarm">1</span>`, address)
	}
}

func TestASemaphoreShowsItsLimit(t *testing.T) {
	t.Parallel()
	client := connected(t)
	s := newSite(t, client, nil)
	sem, err := semaphore.New(client, s.root+"/sem", 3)
	require.NoError(t, err)
	hold, err := sem.AcquireN(t.Context(), 2)
	require.NoError(t, err)
	s.shows("/", "and 1 more")
	assert.Contains(t, s.get("/lock?path="+s.root+"/sem").Body.String(), "<dd>2 of 3</dd>")
	require.NoError(t, hold.Release())
	s.shows("/metrics", `docent_tree_handovers{kind="semaphore"} 2`)
}

func TestNodesThatMayNotBeReadAreListed(t *testing.T) {
	t.Parallel()
	client := connected(t)
	s := newSite(t, client, nil)
	create(t, client, s.root+"/secret", "", framework.ACL(zk.DigestACL(zk.PermAll, "user", "secret")...))
	s.shows("/", "Not readable")
	s.shows("/metrics", "docent_tree_unreadable 1\n")
}

// What programs write into nodes is shown as text.
func TestTextOfNodesIsEscaped(t *testing.T) {
	t.Parallel()
	client := connected(t)
	s := newSite(t, client, func(s *Settings) { s.Write = true })
	const evil = `"><script>alert(1)</script>`
	path := s.root + `/x"'<b>&?path=y`
	testlock.Held(t, newMutex(t, client, path, mutex.WithData([]byte(evil))))
	s.shows("/", "&lt;script&gt;")
	for _, address := range []string{
		"/", "/lock?path=" + url.QueryEscape(path), "/sessions", "/?q=" + url.QueryEscape(evil),
	} {
		body := s.get(address).Body.String()
		assert.NotContains(t, body, "<script>alert", address)
		assert.NotContains(t, body, `"'<b>`, address)
	}
	link := regexp.MustCompile(`href="(lock\?path=[^"]*)"`).FindStringSubmatch(s.get("/").Body.String())
	require.NotNil(t, link)
	lock := s.get("/" + strings.ReplaceAll(link[1], "&amp;", "&"))
	assert.Equal(t, http.StatusOK, lock.Code, link[1])
	assert.Contains(t, lock.Body.String(), "&lt;script&gt;")
	assert.NotContains(t, s.get("/lock?path=%3Cscript%3Ealert").Body.String(), "<script>alert")
}

func TestStreamsTellChanges(t *testing.T) {
	t.Parallel()
	client := connected(t)
	s := newSite(t, client, nil)
	lines, stop := streamOf(t, s.served(nil))
	last := nextVersion(t, lines)
	testlock.Held(t, newMutex(t, client, s.root+"/a"))
	for !strings.Contains(s.get("/").Body.String(), s.root+"/a</a>") {
		version := nextVersion(t, lines)
		assert.NotEqual(t, last, version)
		last = version
	}
	s.shows("/metrics", "docent_tree_viewers 1\n")
	stop()
	s.shows("/metrics", "docent_tree_viewers 0\n")
}

// The limits for requests of an http.Server do not end streams.
func TestStreamsOutliveTheTimeoutsOfTheServer(t *testing.T) {
	t.Parallel()
	client := connected(t)
	s := newSite(t, client, nil)
	const timeout = 8 * time.Second
	lines, _ := streamOf(t, s.served(func(server *http.Server) {
		server.ReadTimeout, server.WriteTimeout = timeout, timeout
	}))
	s.shows("/", "There is no node")
	time.Sleep(timeout + timeout/2) // that is what the stream has to outlive
	testlock.Held(t, newMutex(t, client, s.root+"/a"))
	body := s.shows("/", s.root+"/a</a>")
	shown, err := strconv.Atoi(regexp.MustCompile(`data-version="([0-9]+)"`).FindStringSubmatch(body)[1])
	require.NoError(t, err)
	for told := 0; told < shown; { // nextVersion fails when the stream has ended
		told, err = strconv.Atoi(nextVersion(t, lines))
		require.NoError(t, err)
	}
}

func TestCloseEndsStreams(t *testing.T) {
	t.Parallel()
	s := newSite(t, connected(t), nil)
	lines, _ := streamOf(t, s.served(nil))
	nextVersion(t, lines)
	s.page.Close()
	_, err := io.Copy(io.Discard, lines)
	assert.NoError(t, err, "the stream ends as it should")
}

func TestProbes(t *testing.T) {
	t.Parallel()
	s := newSite(t, connected(t), func(s *Settings) { s.Token, s.Hosts = "secret", []string{"localhost"} })
	assert.Equal(t, http.StatusOK, s.get("/healthz").Code)
	testzk.Eventually(t, func() bool { return s.get("/readyz").Code == http.StatusOK }, "it is not ready")
	away := newSite(t, testzk.Client(t, "127.0.0.1:1"), nil)
	assert.Equal(t, http.StatusOK, away.get("/healthz").Code)
	assert.Equal(t, http.StatusServiceUnavailable, away.get("/readyz").Code)
	assert.Contains(t, away.get("/").Body.String(), "Reading what is below")
}

// No page was open for a while, and the servers are slow to answer when there is one again.
func TestAnOldPictureIsNotShownAsThePresentOne(t *testing.T) {
	t.Parallel()
	network := testzk.Proxy(t)
	s := newSite(t, testzk.Connected(t, network.Addr()), nil)
	testlock.Held(t, newMutex(t, connected(t), s.root+"/a"))
	s.shows("/", s.root+"/a</a>")
	s.hides("/", "This is what was there")
	tree := s.page.tree
	tree.mu.Lock()
	tree.wanted = time.Time{}
	tree.mu.Unlock()
	tree.nudge()
	testzk.Eventually(t, func() bool { return !tree.isLive() }, "the tree is still followed")
	network.Blackhole(true)
	body := s.get("/").Body.String()
	assert.Contains(t, body, s.root+"/a</a>")
	assert.Contains(t, body, "This is what was there")
	network.Blackhole(false)
	s.hides("/", "This is what was there")
}

func TestTheLastPictureIsShownWhenTheServersAreAway(t *testing.T) {
	t.Parallel()
	network := testzk.Proxy(t)
	s := newSite(t, testzk.Connected(t, network.Addr()), nil)
	other := connected(t)
	testlock.Held(t, newMutex(t, other, s.root+"/a"))
	s.shows("/", s.root+"/a</a>")
	_, next := s.page.tree.look()
	require.NoError(t, network.Refuse(true))
	network.DropConnections()
	testzk.Closes(t, next, "open pages are not told")
	body := s.shows("/", "The servers cannot be read")
	assert.Contains(t, body, s.root+"/a</a>")
	assert.Contains(t, s.get("/metrics").Body.String(), "docent_tree_up 0\n")
	testlock.Held(t, newMutex(t, other, s.root+"/b"))
	require.NoError(t, network.Refuse(false))
	s.shows("/", s.root+"/b</a>")
	s.hides("/", "The servers cannot be read")
	s.shows("/metrics", "docent_tree_up 1\n")
}
