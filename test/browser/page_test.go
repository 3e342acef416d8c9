package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/leader"
	"github.com/docent-zk/docent/recipes/semaphore"
)

func TestPage(t *testing.T) {
	all := newTools(t)
	for name, test := range map[string]func(*testing.T, *tools){
		"follows changes":                    followsChanges,
		"is filtered while typing":           isFiltered,
		"keeps the focus":                    keepsFocus,
		"works without scripts":              worksWithoutScripts,
		"asks for the token":                 asksForTheToken,
		"breaks a lock":                      breaksALock,
		"asks only where asking can work":    asksWhereItCanWork,
		"is in no frame, and takes no forms": staysAlone,
		"shows text of nodes as text":        showsText,
		"fits on all screens":                fits,
		"rests while it is hidden":           restsWhileHidden,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, all)
		})
	}
}

func row(path string) string { return fmt.Sprintf(`[data-key=%q]`, path) }

func cell(path, label string) string {
	return fmt.Sprintf("document.querySelector('%s [data-label=%q]').innerText", row(path), label)
}

func followsChanges(t *testing.T, s *tools) {
	p, b := s.serve(t), s.open(t)
	b.goTo(p.address)
	b.live()
	b.do("window.loaded = true")
	path := p.root + "/orders"
	hold := testlock.Held(t, newMutex(t, p.client, path, `{"host":"h1","process":"billing","pid":7}`))
	b.shows("billing[7] on h1")
	assert.Equal(t, "held", js[string](b, cell(path, "State")))
	testlock.Queue(t, newMutex(t, testzk.Connected(t, testzk.Connect()), path, "10.0.0.9"))
	b.becomes(cell(path, "Waiters") + ` === "1"`)
	assert.Equal(t, "waited for", js[string](b, cell(path, "State")))
	age := js[string](b, cell(path, "Longest wait"))
	b.becomes(fmt.Sprintf("%s !== %q", cell(path, "Longest wait"), age)) // no change of the tree moves it
	b.run(chromedp.Click(chromedp.CSS(row(path) + " a")))
	b.shows("10.0.0.9")
	b.live()
	b.do("window.loaded = true")
	require.NoError(t, hold.Release())
	b.becomes(`!document.body.innerText.includes("billing")`)
	assert.True(t, js[bool](b, "window.loaded"), "the page was not loaded again")
	assert.Empty(t, b.complaints())
}

func isFiltered(t *testing.T, s *tools) {
	p, b := s.serve(t), s.open(t)
	plant(t, p.client, p.root, 250)
	b.goTo(p.address)
	b.becomes(`document.querySelectorAll("tbody tr").length === 100`)
	b.run(chromedp.Click(chromedp.CSS(`[rel=next]`)))
	b.becomes(`location.search === "?page=2" && document.querySelectorAll("tbody tr").length === 100`)
	b.run(chromedp.SendKeys(chromedp.CSS(`[name=q]`), "/00123"))
	b.becomes(`document.querySelectorAll("tbody tr").length === 1`)
	assert.Equal(t, "?q=%2F00123", js[string](b, "location.search"))
	assert.Equal(t, "/00123", js[string](b, `document.activeElement.value`), "the field keeps the focus")
	b.do(`document.querySelector("[name=q]").value = ""`)
	b.do(`document.querySelector("[name=state]").value = "waited-for"`)
	b.do(`document.getElementById("filter").dispatchEvent(new Event("input", {bubbles: true}))`)
	b.becomes(`document.querySelectorAll("tbody tr").length === 25`)
	b.run(chromedp.Reload())
	b.becomes(`document.querySelectorAll("tbody tr").length === 25`)
	assert.Empty(t, b.complaints())
}

func keepsFocus(t *testing.T, s *tools) {
	p, b := s.serve(t), s.open(t)
	testlock.Held(t, newMutex(t, p.client, p.root+"/m", ""))
	b.goTo(p.address)
	b.live()
	b.becomes(fmt.Sprintf(`document.querySelector('%s a') !== null`, row(p.root+"/m")))
	b.do(fmt.Sprintf(`document.querySelector('%s a').focus()`, row(p.root+"/m")))
	first := testlock.Held(t, newMutex(t, p.client, p.root+"/a", ""))
	testlock.Held(t, newMutex(t, p.client, p.root+"/z", ""))
	b.becomes(`document.querySelectorAll("tbody tr").length === 3`)
	assert.Equal(t, p.root+"/m", js[string](b, "document.activeElement.textContent"))
	require.NoError(t, first.Release())
	b.becomes(`document.querySelectorAll("tbody tr").length === 2`)
	assert.Equal(t, p.root+"/m", js[string](b, "document.activeElement.textContent"))
}

func worksWithoutScripts(t *testing.T, s *tools) {
	p, b := s.serve(t), s.open(t)
	testlock.Held(t, newMutex(t, p.client, p.root+"/a", "10.0.0.1"))
	testlock.Held(t, newMutex(t, p.client, p.root+"/b", "10.0.0.2"))
	_, err := chromedp.Call(b.within(), emulation.SetScriptExecutionDisabled,
		emulation.SetScriptExecutionDisabledParams{Value: true})
	require.NoError(t, err)
	testzk.Eventually(t, func() bool {
		b.goTo(p.address)
		return strings.Contains(b.text(), "10.0.0.1")
	}, "the page does not show the lock")
	assert.Contains(t, b.text(), "Load the page again")
	b.run(
		chromedp.SendKeys(chromedp.CSS(`[name=q]`), "10.0.0.2"), chromedp.Click(chromedp.CSS(`#filter button`)),
		chromedp.WaitVisible(chromedp.CSS(row(p.root+"/b"))))
	assert.NotContains(t, b.text(), "10.0.0.1")
}

// text returns the text of the page, without a script.
func (b *tab) text() string {
	b.t.Helper()
	return onNode(b, chromedp.Text(chromedp.CSS("body")))
}

func asksForTheToken(t *testing.T, s *tools) {
	const token = "0123456789abcdef"
	name := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(name, []byte(token), 0o600))
	p, b := s.serve(t, "--token-file", name), s.open(t)
	testlock.Held(t, newMutex(t, p.client, p.root+"/a", ""))
	b.goTo(strings.Replace(p.address, "http://", "http://operator:"+token+"@", 1))
	b.live()
	b.shows(p.root + "/a")
	assert.Empty(t, b.complaints())
}

func breaksALock(t *testing.T, s *tools) {
	p, b := s.serve(t, "--write"), s.open(t)
	path := p.root + "/orders"
	hold := testlock.Held(t, newMutex(t, p.client, path, "10.0.0.1"))
	b.goTo(p.address + "lock?path=" + url.QueryEscape(path))
	b.shows("10.0.0.1")
	b.run(chromedp.Click(chromedp.CSS(`a.danger`)), chromedp.WaitVisible(chromedp.CSS(`button.danger`)))
	b.shows(fmt.Sprintf("%#x", hold.Token()))
	b.run(chromedp.Click(chromedp.CSS(`button.danger`)))
	b.shows("The node is deleted.")
	testzk.Closes(t, hold.Done(), "the hold does not end")
	require.ErrorIs(t, hold.Err(), recipes.ErrNodeDeleted)
	b.shows("There are no nodes.")
	assert.NotContains(t, strings.Join(b.complaints(), "\n"), "Content Security Policy")
}

// The candidates of a latch cannot be asked, as docent revoke says.
func asksWhereItCanWork(t *testing.T, s *tools) {
	p, b := s.serve(t, "--write"), s.open(t)
	actions := func(path string) []string {
		b.goTo(p.address + "lock?path=" + url.QueryEscape(path))
		b.becomes(`document.querySelectorAll(".acts a").length > 0`)
		return js[[]string](b, `[...document.querySelectorAll(".acts a")].map((a) => a.innerText)`)
	}
	latch, err := leader.NewLatch(p.client, p.root+"/leader")
	require.NoError(t, err)
	require.NoError(t, latch.Start(t.Context()))
	t.Cleanup(func() { _ = latch.Close() })
	_, err = latch.Await(testzk.Context(t))
	require.NoError(t, err)
	assert.Equal(t, []string{"Break …"}, actions(p.root+"/leader"))

	hold := testlock.Held(t, newMutex(t, p.client, p.root+"/orders", ""))
	assert.Equal(t, []string{"Ask …", "Break …"}, actions(p.root+"/orders"))
	b.run(chromedp.Click(chromedp.CSS(`.acts a`)), chromedp.WaitVisible(chromedp.CSS(`form button`)))
	b.run(chromedp.Click(chromedp.CSS(`form button`)))
	b.shows("The holder is asked to release the lock.")
	testzk.Closes(t, hold.Revoked(), "the holder is not asked")
	require.NoError(t, hold.Err())
}

// A page of another site can neither show the page in a frame nor send its forms.
func staysAlone(t *testing.T, s *tools) {
	p, b := s.serve(t, "--write"), s.open(t)
	hold := testlock.Held(t, newMutex(t, p.client, p.root+"/a", ""))
	node, token := url.QueryEscape(hold.Path()), fmt.Sprintf("%#x", hold.Token())
	fields := map[string]string{"do": "break", "path": p.root + "/a", "node": hold.Path(), "token": token}
	b.goTo(p.address + "confirm?do=break&path=" + url.QueryEscape(p.root+"/a") + "&node=" + node + "&token=" + token)
	fields["form"] = js[string](b, `document.querySelector("[name=form]").value`) // even with that
	form := ""
	for name, value := range fields {
		form += fmt.Sprintf(`<input name=%q value=%q>`, name, value)
	}
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, `<iframe id=f src=%q></iframe>
			<form method=post action="%sact">%s<button>x</button></form>`, p.address, p.address, form)
	}))
	defer other.Close()
	b.goTo(strings.Replace(other.URL, "127.0.0.1", "localhost", 1))
	b.run(chromedp.WaitVisible(chromedp.CSS("#f")))
	testzk.Eventually(t, func() bool {
		return strings.Contains(strings.Join(b.complaints(), "\n"), "frame-ancestors")
	}, "the frame is not refused")
	b.run(chromedp.Click(chromedp.CSS("button")))
	b.becomes(`document.body && document.body.innerText.includes("cross-origin request")`)
	require.NoError(t, hold.Err())
}

func showsText(t *testing.T, s *tools) {
	p, b := s.serve(t), s.open(t)
	path := p.root + `/<img src=x onerror="window.evil=1">&q=?#`
	testlock.Held(t, newMutex(t, p.client, path, `"><script>window.evil=1</script>`))
	b.goTo(p.address)
	b.shows(path)
	b.shows("<script>window.evil=1</script>")
	b.run(chromedp.Click(chromedp.CSS(`tbody th a`)), chromedp.WaitVisible(chromedp.CSS(`h1.path`)))
	b.shows("<script>window.evil=1</script>")
	assert.Equal(t, path, js[string](b, `document.querySelector("h1").innerText`))
	assert.False(t, js[bool](b, "'evil' in window"))
	assert.Empty(t, b.complaints())
}

// contrast returns the texts that are too faint for their background: less than 4.5 to 1.
const contrast = `(() => {
	const parts = (c) => { const m = c.match(/[\d.]+/g).map(Number); return m.length < 4 ? [...m, 1] : m; };
	const light = (c) => c.slice(0, 3).map((v) => v / 255)
		.map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
		.reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
	const faint = [];
	for (const e of document.querySelectorAll("body *")) {
		if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) || !e.checkVisibility()) continue;
		let at = e, back = [0, 0, 0, 0];
		while (at && back[3] === 0) { back = parts(getComputedStyle(at).backgroundColor); at = at.parentElement; }
		const a = light(parts(getComputedStyle(e).color)), b = light(back);
		const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		if (ratio < 4.5) faint.push(e.nodeName + "." + e.className + " " + e.innerText.slice(0, 30) + " " + ratio);
	}
	return faint;
})()`

func fits(t *testing.T, s *tools) {
	p, b := s.serve(t, "--write"), s.open(t)
	other := testzk.Connected(t, testzk.Connect())
	plant(t, p.client, p.root+"/batch", 30)
	id := func(host string, pid int) string {
		return fmt.Sprintf(`{"host":%q,"process":"billing","pid":%d}`, host, pid)
	}
	one, two := p.root+"/orders/one", p.root+"/orders/two-with-a-rather-long-name-for-a-lock"
	testlock.Held(t, newMutex(t, p.client, one, id("host-1.example.com", 4711)))
	testlock.Held(t, newMutex(t, other, two, id("host-2.example.com", 42)))
	testlock.Queue(t, newMutex(t, p.client, two, id("host-1.example.com", 4711)))
	testlock.Queue(t, newMutex(t, other, one, id("host-2.example.com", 42)))
	sem, err := semaphore.New(p.client, p.root+"/downloads", 5, semaphore.WithData([]byte(id("host-1", 1))))
	require.NoError(t, err)
	testlock.Held(t, sem)
	testlock.Held(t, sem)
	const node = "/_c_8026b758-0c64-4418-a4a7-a40067d845c1-lock-0000000000"
	_, err = p.client.Create(t.Context(), p.root+"/left-behind"+node, []byte("10.0.0.7"), framework.Parents())
	require.NoError(t, err)
	b.goTo(p.address + "deadlocks")
	b.shows("2 sessions")
	session := js[string](b, `document.querySelector(".cycle a").getAttribute("href")`)
	b.goTo(p.address + "lock?path=" + url.QueryEscape(two))
	confirm := js[string](b, `document.querySelector("a.danger").getAttribute("href")`)
	pages := map[string]string{
		"confirm": confirm,
		"locks":   "", "lock": "lock?path=" + url.QueryEscape(two), "sessions": "sessions", "session": session,
		"deadlocks": "deadlocks", "waited": "?state=waited-for&sort=wait",
	}
	for _, scheme := range []string{"light", "dark"} {
		for device, width := range map[string]int64{"wide": 1280, "phone": 390} {
			b.run(chromedp.EmulateViewport(width, 844))
			_, err := chromedp.Call(b.within(), emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
			})
			require.NoError(t, err)
			for name, address := range pages {
				what := fmt.Sprintf("%s-%s-%s", name, scheme, device)
				b.goTo(p.address + address)
				b.becomes(`!document.body.innerText.includes("Reading what")`)
				assert.LessOrEqual(t, js[int64](b, "document.documentElement.scrollWidth"), width, what)
				assert.Empty(t, js[[]string](b, contrast), what)
				nameless := `[...document.querySelectorAll("a, button, input:not([type=hidden]), select")]
					.filter((e) => !(e.innerText || e.ariaLabel || e.labels && e.labels.length))
					.map((e) => e.outerHTML)`
				assert.Empty(t, js[[]string](b, nameless), what)
				b.shoot(what)
			}
		}
	}
	assert.Empty(t, b.complaints())
}

func restsWhileHidden(t *testing.T, s *tools) {
	p, b := s.serve(t), s.open(t)
	b.goTo(p.address)
	b.live()
	testlock.Held(t, newMutex(t, p.client, p.root+"/a", ""))
	b.shows(p.root + "/a")
	b.do(`Object.defineProperty(document, "hidden", {value: true, configurable: true})`)
	b.do(`document.dispatchEvent(new Event("visibilitychange"))`)
	b.shows("Paused")
	testlock.Held(t, newMutex(t, p.client, p.root+"/b", ""))
	b.do(`Object.defineProperty(document, "hidden", {value: false, configurable: true})`)
	b.do(`document.dispatchEvent(new Event("visibilitychange"))`)
	b.live()
	b.shows(p.root + "/b")
}

// Prometheus's own parser reads the metrics.
func TestMetrics(t *testing.T) {
	p := build(t).serve(t)
	testlock.Held(t, newMutex(t, p.client, p.root+"/a", ""))
	testzk.Eventually(t, func() bool {
		answer, err := http.Get(p.address + "metrics")
		require.NoError(t, err)
		defer func() { _ = answer.Body.Close() }()
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := parser.TextToMetricFamilies(answer.Body)
		require.NoError(t, err)
		locks := families["docent_tree_objects"]
		return locks != nil && len(locks.Metric) == 1 && locks.Metric[0].GetGauge().GetValue() == 1
	}, "the lock is not counted")
}

// TestManyLocks prints how long a page of many locks takes, and what it costs when nothing changes.
func TestManyLocks(t *testing.T) {
	s := newTools(t)
	locks := 10_000
	if text := os.Getenv("DOCENT_LOCKS"); text != "" {
		var err error
		locks, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	p, b := s.serve(t), s.open(t)
	plant(t, p.client, p.root, locks)
	before := cpu(t, p.pid)
	begun := time.Now()
	b.goTo(p.address)
	shown := time.Since(begun)
	b.becomes(`document.querySelectorAll("tbody tr").length === 100`)
	t.Logf("%d locks: loaded in %v, with the first reading of all locks in %v, %v of processor time in docent",
		locks, shown, time.Since(begun), cpu(t, p.pid)-before)
	b.live()
	begun = time.Now()
	b.goTo(p.address + "?sort=wait")
	assert.Equal(t, 100, js[int](b, `document.querySelectorAll("tbody tr").length`), "rows that are sent")
	t.Logf("loaded again, sorted, in %v, %d elements, %d bytes", time.Since(begun),
		js[int](b, `document.querySelectorAll("*").length`),
		js[int](b, `performance.getEntriesByType("navigation")[0].decodedBodySize`))
	b.live()
	if text := os.Getenv("DOCENT_IDLE"); text != "" {
		idle, err := time.ParseDuration(text)
		require.NoError(t, err)
		time.Sleep(time.Second)
		before = cpu(t, p.pid)
		time.Sleep(idle)
		spent := cpu(t, p.pid) - before
		t.Logf("nothing changes for %v: %v of processor time, %.2f%% of one core", idle, spent,
			100*spent.Seconds()/idle.Seconds())
		stop := time.Now().Add(idle)
		changes := 0
		before = cpu(t, p.pid)
		mu := newMutex(t, p.client, p.root+"/busy", "")
		for ; time.Now().Before(stop); changes++ {
			hold, err := mu.Acquire(t.Context())
			require.NoError(t, err)
			require.NoError(t, hold.Release())
			time.Sleep(10 * time.Millisecond)
		}
		t.Logf("one lock is taken %d times in %v: %.2f%% of one core", changes, idle,
			100*(cpu(t, p.pid)-before).Seconds()/idle.Seconds())
	}
	testlock.Queue(t, newMutex(t, testzk.Connected(t, testzk.Connect()), p.root+"/00005", "10.9.9.9"))
	b.goTo(p.address + "?q=10.9.9.9")
	b.becomes(`document.querySelectorAll("tbody tr").length === 1`)
	assert.Empty(t, b.complaints())
}

// cpu returns the processor time of a process.
func cpu(t testing.TB, pid int) time.Duration {
	t.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0 // not on this system
	}
	fields := strings.Fields(string(content[strings.LastIndexByte(string(content), ')')+1:]))
	var ticks int
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		require.NoError(t, err)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
