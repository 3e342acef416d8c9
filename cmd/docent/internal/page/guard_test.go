package page

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/inspect"
	"github.com/docent-zk/docent/recipes/leader"
	"github.com/docent-zk/docent/recipes/mutex"
)

func TestAllAnswersHaveTheHeaders(t *testing.T) {
	t.Parallel()
	s := newSite(t, connected(t), nil)
	for _, address := range []string{"/", "/lock?path=/x", "/metrics", "/healthz", "/assets/page.js", "/none"} {
		w := s.get(address)
		for name, value := range headers {
			assert.Equal(t, value, w.Header().Get(name), address)
		}
	}
	assert.Equal(t, "text/css; charset=utf-8", s.get("/assets/page.css").Header().Get("Content-Type"))
}

func TestRequestsToOtherNamesAreRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, connected(t), func(s *Settings) {
		s.Hosts = []string{"localhost", "127.0.0.1", "::1", "proxy.example:8443"}
	})
	to := func(host string) func(*http.Request) { return func(r *http.Request) { r.Host = host } }
	for host, want := range map[string]int{
		"localhost": 200, "localhost:8480": 200, "LOCALHOST:1": 200, "127.0.0.1:8480": 200,
		"[::1]:8480": 200, "[::1]": 200, "proxy.example:8443": 200, "proxy.example": 200,
		"evil.example": 421, "evil.example:8480": 421, "localhost.evil.example": 421, "": 421, "127.0.0.2": 421,
	} {
		for _, address := range []string{"/", "/metrics", "/assets/page.js"} {
			assert.Equal(t, want, s.get(address, to(host)).Code, "%s of %q", address, host)
		}
	}
}

func TestATokenIsAskedFor(t *testing.T) {
	t.Parallel()
	const token = "0123456789abcdef"
	s := newSite(t, connected(t), func(s *Settings) { s.Token = token })
	basic := func(user, password string) func(*http.Request) {
		return func(r *http.Request) { r.SetBasicAuth(user, password) }
	}
	for name, test := range map[string]struct {
		change func(*http.Request)
		want   int
	}{
		"none":            {func(*http.Request) {}, http.StatusUnauthorized},
		"empty":           {header("Authorization", "Bearer "), http.StatusUnauthorized},
		"wrong":           {header("Authorization", "Bearer "+token+"0"), http.StatusUnauthorized},
		"wrong password":  {basic("operator", "0"), http.StatusUnauthorized},
		"token as a user": {basic(token, ""), http.StatusUnauthorized},
		"bearer":          {header("Authorization", "Bearer "+token), http.StatusOK},
		"bearer in lower": {header("Authorization", "bearer "+token), http.StatusOK},
		"password":        {basic("operator", token), http.StatusOK},
	} {
		for _, address := range []string{"/", "/metrics", "/assets/page.css"} {
			w := s.get(address, test.change)
			assert.Equal(t, test.want, w.Code, name)
			assert.Equal(t, test.want == http.StatusUnauthorized, w.Header().Get("WWW-Authenticate") != "", name)
		}
	}
}

func TestTheHeaderOfAProxyIsAskedFor(t *testing.T) {
	t.Parallel()
	s := newSite(t, connected(t), func(s *Settings) { s.TrustHeader = "X-Forwarded-User" })
	assert.Equal(t, http.StatusForbidden, s.get("/").Code)
	assert.Equal(t, http.StatusForbidden, s.get("/", header("X-Forwarded-User", "")).Code)
	assert.Equal(t, http.StatusOK, s.get("/", header("X-Forwarded-User", "ann")).Code)
}

// hidden returns the hidden fields of a form.
func hidden(t testing.TB, body string) url.Values {
	t.Helper()
	fields := url.Values{}
	for _, field := range regexp.MustCompile(`<input type="hidden" name="([a-z]+)" value="([^"]*)">`).
		FindAllStringSubmatch(body, -1) {
		fields.Set(field[1], field[2])
	}
	require.NotEmpty(t, fields.Get("form"))
	return fields
}

// link returns the address behind a link that begins with a text, on a page.
func link(t testing.TB, body, begin string) string {
	t.Helper()
	found := regexp.MustCompile(`href="(` + regexp.QuoteMeta(begin) + `[^"]*)"`).FindStringSubmatch(body)
	require.NotNil(t, found, body)
	return "/" + strings.ReplaceAll(found[1], "&amp;", "&")
}

func TestALockIsBroken(t *testing.T) {
	t.Parallel()
	client := connected(t)
	s := newSite(t, client, func(s *Settings) { s.Write = true; s.TrustHeader = "X-User" })
	as := func(user string) func(*http.Request) { return header("X-User", user) }
	path := s.root + "/orders"
	hold := testlock.Held(t, newMutex(t, client, path))
	testlock.Queue(t, newMutex(t, connected(t), path))
	s.get("/", as("ann"))
	var lock string
	require.Eventually(t, func() bool {
		lock = s.get("/lock?path="+path, as("ann")).Body.String()
		return strings.Contains(lock, "1 ahead")
	}, patience, tick)
	confirm := s.get(link(t, lock, "confirm?do=break"), as("ann"))
	assert.Contains(t, confirm.Body.String(), "The next waiter holds the lock at once")
	form := hidden(t, confirm.Body.String())

	// What is not exactly this form of this user, from this page, is refused.
	for name, value := range map[string]string{"form": "0", "do": doRevoke, "node": path + "/x", "token": "0x1"} {
		changed := url.Values{}
		for field := range form {
			changed.Set(field, form.Get(field))
		}
		changed.Set(name, value)
		assert.Equal(t, http.StatusForbidden, s.post("/act", changed, as("ann")).Code, name)
	}
	assert.Equal(t, http.StatusForbidden, s.post("/act", form, as("eve")).Code, "another user")
	assert.Equal(t, http.StatusForbidden, s.post("/act", form).Code, "no user")
	for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"} {
		assert.Equal(t, http.StatusForbidden, s.post("/act", form, as("ann"), header(name, value)).Code, name)
	}
	assert.Equal(t, http.StatusMethodNotAllowed, s.get("/act?"+form.Encode(), as("ann")).Code)
	require.NoError(t, hold.Err())

	done := s.post("/act", form, as("ann"), header("Sec-Fetch-Site", "same-origin"))
	require.Equal(t, http.StatusSeeOther, done.Code, done.Body.String())
	testzk.Closes(t, hold.Done(), "the hold does not end")
	require.ErrorIs(t, hold.Err(), recipes.ErrNodeDeleted)
	assert.Equal(t, "lock?done=break&path="+url.QueryEscape(path), done.Header().Get("Location"))
	assert.Contains(t, s.get("/"+done.Header().Get("Location"), as("ann")).Body.String(), "The node is deleted.")
	assert.Contains(t, s.log.String(), "user=ann")

	again := s.post("/act", form, as("ann"))
	assert.Equal(t, http.StatusConflict, again.Code)
	assert.Contains(t, again.Body.String(), "does not exist any more")
}

func TestAHolderIsAsked(t *testing.T) {
	t.Parallel()
	client := connected(t)
	s := newSite(t, client, func(s *Settings) { s.Write = true })
	path := s.root + "/orders"
	hold := testlock.Held(t, newMutex(t, client, path, mutex.WithIdentity()))
	lock := s.shows("/lock?path="+path, "confirm?do=revoke")
	confirm := s.get(link(t, lock, "confirm?do=revoke"))
	done := s.post("/act", hidden(t, confirm.Body.String()))
	require.Equal(t, http.StatusSeeOther, done.Code, done.Body.String())
	testzk.Closes(t, hold.Revoked(), "the holder is not asked")
	require.NoError(t, hold.Err())
	s.shows("/lock?path="+path, "asked to release")
}

// recipes.Revoke refuses the candidates of a latch, and so do docent revoke and the page.
func TestCandidatesOfALatchAreNotAsked(t *testing.T) {
	t.Parallel()
	client := connected(t)
	s := newSite(t, client, func(s *Settings) { s.Write = true })
	path := s.root + "/leader"
	latch, err := leader.NewLatch(client, path)
	require.NoError(t, err)
	require.NoError(t, latch.Start(t.Context()))
	t.Cleanup(func() { _ = latch.Close() })
	term, err := latch.Await(testzk.Context(t))
	require.NoError(t, err)
	address := link(t, s.shows("/lock?path="+path, "confirm?do=break"), "confirm?do=break")
	assert.NotContains(t, s.get("/lock?path="+path).Body.String(), "confirm?do=revoke")
	form := hidden(t, s.get(address).Body.String())

	ask := s.get(strings.Replace(address, "do=break", "do=revoke", 1))
	assert.Equal(t, http.StatusConflict, ask.Code)
	assert.Contains(t, ask.Body.String(), "This is not a node that can be asked or broken.")
	assert.NotContains(t, ask.Body.String(), "<form")
	// A form that the page does not make.
	token, err := inspect.ParseID(form.Get("token"))
	require.NoError(t, err)
	a := action{Do: doRevoke, Path: path, Node: term.Path(), ID: token}
	form.Set("do", doRevoke)
	form.Set("form", a.formToken(s.page, httptest.NewRequest(http.MethodGet, "/", nil)))
	done := s.post("/act", form)
	assert.Equal(t, http.StatusConflict, done.Code)
	assert.NotContains(t, done.Body.String(), "It is not known whether this is done")
	require.NoError(t, term.Err())
}

func TestOnlyNodesBelowTheRootAreBroken(t *testing.T) {
	t.Parallel()
	client := connected(t)
	s := newSite(t, client, func(s *Settings) { s.Write = true })
	testlock.Held(t, newMutex(t, client, s.root+"-other"))
	for _, q := range []string{
		"do=break&path=" + s.root + "-other&node=" + s.root + "-other/x&token=0x1",
		"do=break&path=" + s.root + "&node=/x&token=0x1",
		"do=break&path=" + s.root + "&node=" + s.root + "/x&token=y",
		"do=delete&path=" + s.root + "&node=" + s.root + "/x&token=0x1",
		"do=break&path=" + s.root + "/../x&node=" + s.root + "/../x/y&token=0x1",
	} {
		assert.Equal(t, http.StatusBadRequest, s.get("/confirm?"+q).Code, q)
		values, err := url.ParseQuery(q)
		require.NoError(t, err)
		assert.Equal(t, http.StatusBadRequest, s.post("/act", values).Code, q)
	}
}

func TestWithoutWriteNothingIsWritten(t *testing.T) {
	t.Parallel()
	s := newSite(t, connected(t), nil)
	q := "do=break&path=" + s.root + "&node=" + s.root + "/x&token=0x1"
	assert.Equal(t, http.StatusNotFound, s.get("/confirm?"+q).Code)
	values, err := url.ParseQuery(q)
	require.NoError(t, err)
	assert.Equal(t, http.StatusNotFound, s.post("/act", values).Code)
}
