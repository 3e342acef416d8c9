package browser

import (
	"bytes"
	"flag"
	"fmt"
	"image/png"
	"os"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/leader"
	"github.com/docent-zk/docent/recipes/rwlock"
	"github.com/docent-zk/docent/recipes/semaphore"
	"github.com/docent-zk/docent/zktest"
)

var update = flag.Bool("update", false, "write docs/pictures/page.png")

const (
	pictureFile   = repository + "/docs/pictures/page.png"
	pictureWidth  = 1180
	pictureHeight = 560
)

// The README shows the page. The ages on the picture are from a time at which there are no fractions of
// seconds, so it is made only with -update. The test compares what it shows besides.
func TestPictureOfThePage(t *testing.T) {
	srv := zktest.Start(t)
	p := newTools(t).serveTree(t, srv.Addr(), "/prod")
	plantPicture(t, srv.Addr())
	b := p.tools.open(t)
	b.run(chromedp.EmulateViewport(pictureWidth, pictureHeight))
	b.goTo(p.address)
	b.live()
	b.becomes(`document.querySelectorAll("tbody tr").length === 5`)
	for path, cells := range map[string][3]string{
		"/prod/backup":    {"mutex", "held", "backup[88] on db-1"},
		"/prod/catalogue": {"rwlock", "waited for", "catalogue[4340] on web-1 and 1 more"},
		"/prod/exports":   {"semaphore", "held", "export[500] on job-1 and 2 more"},
		"/prod/orders":    {"mutex", "waited for", "orders[4211] on web-1"},
		"/prod/scheduler": {"latch", "waited for", "sched-1"},
	} {
		for i, label := range []string{"Kind", "State", "Holder"} {
			b.becomes(fmt.Sprintf("%s === %q", cell(path, label), cells[i]))
		}
	}
	if *update {
		b.becomes(cell("/prod/backup", "Age") + ` === "27s"`)
		require.NoError(t, os.WriteFile(pictureFile, b.picture(), 0o600))
	}
	written, err := os.ReadFile(pictureFile)
	require.NoError(t, err)
	size, err := png.DecodeConfig(bytes.NewReader(written))
	require.NoError(t, err)
	got := []int{size.Width, size.Height}
	assert.Equal(t, []int{pictureWidth, pictureHeight}, got, "go test -run TestPicture -update")
	assert.Empty(t, b.complaints())
}

// plantPicture has clients hold locks and wait for locks below /prod.
func plantPicture(t *testing.T, connect string) {
	t.Helper()
	client := func() *framework.Client { return testzk.Connected(t, connect) }
	id := func(host, process string, pid int) string {
		return fmt.Sprintf(`{"host":%q,"process":%q,"pid":%d}`, host, process, pid)
	}
	testlock.Held(t, newMutex(t, client(), "/prod/backup", id("db-1", "backup", 88)))

	catalogue := func(host string) *rwlock.RWLock {
		lock, err := rwlock.New(client(), "/prod/catalogue", rwlock.WithData([]byte(id(host, "catalogue", 4340))))
		require.NoError(t, err)
		return lock
	}
	testlock.Held(t, catalogue("web-1").Read())
	testlock.Held(t, catalogue("web-2").Read())
	testlock.Queue(t, catalogue("web-3").Write())

	for _, host := range []string{"job-1", "job-2", "job-3"} {
		exports, err := semaphore.New(client(), "/prod/exports", 5, semaphore.WithData([]byte(id(host, "export", 500))))
		require.NoError(t, err)
		testlock.Held(t, exports)
	}

	testlock.Held(t, newMutex(t, client(), "/prod/orders", id("web-1", "orders", 4211)))
	testlock.Queue(t, newMutex(t, client(), "/prod/orders", id("web-2", "orders", 4222)))
	testlock.Queue(t, newMutex(t, client(), "/prod/orders", id("web-3", "orders", 4233)))

	for i, name := range []string{"sched-1", "sched-2"} {
		latch, err := leader.NewLatch(client(), "/prod/scheduler", leader.WithID(name))
		require.NoError(t, err)
		require.NoError(t, latch.Start(t.Context()))
		t.Cleanup(func() { _ = latch.Close() })
		if i == 0 {
			_, err := latch.Await(testzk.Context(t))
			require.NoError(t, err)
		}
	}
}
