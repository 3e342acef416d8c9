package browser

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"testing"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/mutex"
)

// tools are the command docent and a browser, for all tests.
type tools struct {
	docent  string
	browser context.Context
}

// build builds docent.
func build(t *testing.T) *tools {
	t.Helper()
	path := filepath.Join(t.TempDir(), "docent")
	out, err := exec.Command("go", "build", "-C", "../../cmd/docent", "-o", path, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return &tools{docent: path}
}

// newTools builds docent and starts a browser.
func newTools(t *testing.T) *tools {
	t.Helper()
	all := build(t)
	all.browser = newBrowser(t)
	return all
}

// newBrowser starts a browser.
func newBrowser(t *testing.T) context.Context {
	t.Helper()
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.UserDataDir(t.TempDir()))
	if os.Getuid() == 0 {
		opts = append(opts, chromedp.NoSandbox)
	}
	if chromium, err := exec.LookPath("chromium"); err == nil {
		opts = append(opts, chromedp.ExecPath(chromium))
	}
	opts = append(opts, chromedp.WSURLReadTimeout(testzk.Patience))
	allocator, stopAll := chromedp.NewExecAllocator(context.Background(), opts...)
	t.Cleanup(stopAll)
	browser, stop := chromedp.NewContext(allocator)
	t.Cleanup(stop)
	require.NoError(t, chromedp.Do(browser), "start Chromium: see make deps")
	return browser
}

// site is a page that a process of docent serves.
type site struct {
	t       *testing.T
	tools   *tools
	client  *framework.Client
	root    string
	address string
	pid     int
}

var told = regexp.MustCompile(`is (http://\S+/)`)

// serve starts docent serve for a tree of this test.
func (s *tools) serve(t *testing.T, args ...string) *site {
	t.Helper()
	return s.serveTree(t, testzk.Connect(), testzk.Path(t), args...)
}

// serveTree starts docent serve for a tree of some servers.
func (s *tools) serveTree(t *testing.T, connect, root string, args ...string) *site {
	t.Helper()
	cmd := exec.Command(s.docent, append([]string{
		"--connect", connect, "serve", "--listen", "127.0.0.1:0", "--interval", "100ms", root,
	}, args...)...)
	errs, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewReader(errs)
	line, err := lines.ReadString('\n')
	found := told.FindStringSubmatch(line)
	var rest sync.WaitGroup
	rest.Go(func() { _, _ = io.Copy(io.Discard, lines) })
	t.Cleanup(func() {
		assert.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		rest.Wait()
		assert.NoError(t, cmd.Wait(), "docent serve ends cleanly")
	})
	require.NoError(t, err)
	require.NotNil(t, found, line)
	client := testzk.Connected(t, connect)
	return &site{t: t, tools: s, client: client, root: root, address: found[1], pid: cmd.Process.Pid}
}

// tab is a tab of the browser.
type tab struct {
	t   *testing.T
	ctx context.Context
	mu  sync.Mutex
	bad []string // what the browser has complained about
}

// open opens a tab of a browser without cookies. The test fails if the browser complains.
func (s *tools) open(t *testing.T) *tab {
	t.Helper()
	ctx, stop := chromedp.NewContext(s.browser, chromedp.WithNewBrowserContext())
	t.Cleanup(stop)
	b := &tab{t: t, ctx: ctx}
	require.NoError(t, chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			b.complain(e.ExceptionDetails.Text)
		case *runtime.EventConsoleAPICalled:
			if e.Type == runtime.ConsoleAPICalledTypeError {
				b.complain(fmt.Sprint("console.error: ", consoleText(e.Args)))
			}
		case *log.EventEntryAdded:
			if e.Entry.Level == log.EntryLevelError {
				b.complain(e.Entry.Text + " " + e.Entry.URL)
			}
		}
	}))
	_, err := chromedp.Call(ctx, log.Enable, cdp.Empty{})
	require.NoError(t, err)
	return b
}

// consoleText returns what a script has written to the console.
func consoleText(args []*runtime.RemoteObject) (text []string) {
	for _, a := range args {
		text = append(text, string(a.Value)+a.Description)
	}
	return text
}

func (b *tab) complain(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bad = append(b.bad, text)
}

func (b *tab) complaints() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bad
}

// within returns a context for actions that must come to an end.
func (b *tab) within() context.Context {
	ctx, cancel := context.WithTimeout(b.ctx, testzk.Patience)
	b.t.Cleanup(cancel)
	return ctx
}

func (b *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	for _, action := range actions {
		onNode(b, action)
	}
}

// onNode runs an action on a node of the page, and returns its result. The page replaces nodes whenever
// something changes. If it has replaced the node that was found, the action has had no effect, and is repeated.
func onNode[T any](b *tab, action chromedp.Action[T]) T {
	b.t.Helper()
	for ctx := b.within(); ; {
		result, err := chromedp.Run(ctx, action)
		var refused *cdproto.Error
		if errors.As(err, &refused) && refused.Message == "Could not find node with given id" {
			continue
		}
		require.NoError(b.t, err)
		return result
	}
}

// goTo opens an address.
func (b *tab) goTo(address string) {
	b.t.Helper()
	b.run(chromedp.Navigate(address))
}

// js returns the value of an expression on the page.
func js[T any](b *tab, expression string) T {
	b.t.Helper()
	value, err := chromedp.Run(b.within(), chromedp.Evaluate[T](expression))
	require.NoError(b.t, err, expression)
	return value
}

// do evaluates an expression on the page.
func (b *tab) do(expression string) {
	b.t.Helper()
	js[int](b, "("+expression+", 0)")
}

// becomes waits until an expression is true on the page. The page may be loaded meanwhile.
func (b *tab) becomes(expression string) {
	b.t.Helper()
	ctx := b.within()
	testzk.Eventually(b.t, func() bool {
		is, err := chromedp.Run(ctx, chromedp.Evaluate[bool](expression))
		return err == nil && is
	}, "%s: the page does not become like this", expression)
}

// shows waits until the page shows a text.
func (b *tab) shows(text string) {
	b.t.Helper()
	b.becomes(fmt.Sprintf("document.body.innerText.includes(%q)", text))
}

// live waits until the page follows changes.
func (b *tab) live() {
	b.t.Helper()
	b.becomes(`document.getElementById("link").textContent === "Live"`)
}

// shoot makes a screenshot.
func (b *tab) shoot(name string) {
	b.t.Helper()
	picture := b.picture()
	dir := os.Getenv("DOCENT_SCREENSHOTS")
	if dir == "" {
		dir = b.t.TempDir()
	}
	require.NoError(b.t, os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o600))
}

// picture returns a picture of the whole page: PNG.
func (b *tab) picture() []byte {
	b.t.Helper()
	picture, err := chromedp.Run(b.within(), chromedp.FullScreenshot(100))
	require.NoError(b.t, err)
	return picture
}

func newMutex(t testing.TB, c *framework.Client, path, data string) *mutex.Mutex {
	t.Helper()
	mu, err := mutex.New(c, path, mutex.WithData([]byte(data)))
	require.NoError(t, err)
	return mu
}

// plant creates locks with a holder each, one in ten with a waiter, in transactions of many.
func plant(t testing.TB, c *framework.Client, root string, locks int) {
	t.Helper()
	const name = "/_c_8026b758-0c64-4418-a4a7-a40067d845c%d-lock-000000000%d"
	_, err := c.Create(t.Context(), root, nil, framework.Parents())
	require.NoError(t, err)
	var ops []framework.Op
	for i := range locks {
		dir := fmt.Sprintf("%s/%05d", root, i)
		id := func(who int) []byte {
			return fmt.Appendf(nil, `{"host":"host-%d","process":"worker","pid":%d}`, i%50, 100*who+i)
		}
		ops = append(ops, framework.CreateOp(dir, nil),
			framework.CreateOp(dir+fmt.Sprintf(name, 1, 0), id(1), framework.Ephemeral()))
		if i%10 == 0 {
			ops = append(ops, framework.CreateOp(dir+fmt.Sprintf(name, 2, 1), id(2), framework.Ephemeral()))
		}
		if len(ops) > 500 || i == locks-1 {
			_, err := c.Multi(t.Context(), ops...)
			require.NoError(t, err)
			ops = nil
		}
	}
}
