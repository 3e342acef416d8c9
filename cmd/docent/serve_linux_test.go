package main

import (
	"bufio"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
)

var pageAddress = regexp.MustCompile(`docent: the page of \S+ is (http://\S+/)`)

// serves starts docent serve, and returns the address of the page.
func serves(t testing.TB, args ...string) (p *process, address string) {
	t.Helper()
	p = start(t, connected(append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)...)
	testzk.Eventually(t, func() bool {
		found := pageAddress.FindStringSubmatch(p.errs.String())
		if found != nil {
			address = found[1]
		}
		return found != nil
	}, "docent does not tell the address of the page")
	return p, address
}

func fetch(t testing.TB, r *http.Request) (code int, body string) {
	t.Helper()
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	content, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(content)
}

func request(t testing.TB, address string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(testzk.Context(t), http.MethodGet, address, nil)
	require.NoError(t, err)
	r.Close = true
	return r
}

func TestServeShowsTheLockOfAnotherDocent(t *testing.T) {
	t.Parallel()
	root := testzk.Path(t)
	holder := start(t, connected("lock", root+"/report", "--", "sh", "-c", "echo held; sleep 1000 & wait")...)
	require.Equal(t, "held", holder.line())
	p, address := serves(t, root)
	testzk.Eventually(t, func() bool {
		_, body := fetch(t, request(t, address))
		return strings.Contains(body, "docent:sh[")
	}, "the page does not show the holder")
	holder.signal(syscall.SIGTERM)
	holder.wait()
	p.signal(syscall.SIGTERM)
	assert.Zero(t, p.wait(), &p.errs)
}

func TestServeEndsStreamsWhenItEnds(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]syscall.Signal{"SIGTERM": syscall.SIGTERM, "SIGINT": syscall.SIGINT} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, address := serves(t, testzk.Path(t))
			answer, err := http.DefaultClient.Do(request(t, address+"events"))
			require.NoError(t, err)
			defer func() { _ = answer.Body.Close() }()
			lines := bufio.NewReader(answer.Body)
			_, err = lines.ReadString('\n')
			require.NoError(t, err)
			p.signal(s)
			_, err = io.Copy(io.Discard, lines)
			require.NoError(t, err, "the stream ends as it should")
			assert.Zero(t, p.wait(), &p.errs)
		})
	}
}

func TestServeStartsWithoutServers(t *testing.T) {
	t.Parallel()
	p := start(t, "--connect", "127.0.0.1:1", "serve", "--listen", "127.0.0.1:0")
	testzk.Eventually(t, func() bool { return pageAddress.MatchString(p.errs.String()) }, "there is no page")
	p.signal(syscall.SIGTERM)
	assert.Zero(t, p.wait(), &p.errs)
}

func TestServeAnswersToItsNameOnly(t *testing.T) {
	t.Parallel()
	_, address := serves(t, "--host", "locks.example", testzk.Path(t))
	for host, want := range map[string]int{"": 200, "locks.example": 200, "localhost": 200, "evil.example": 421} {
		r := request(t, address)
		r.Host = host
		code, _ := fetch(t, r)
		assert.Equal(t, want, code, host)
	}
}

func TestServeAsksForTheTokenOfTheFile(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "token")
	writeFile(t, name, "0123456789abcdef\n", 0o600)
	_, address := serves(t, "--token-file", name, testzk.Path(t))
	code, _ := fetch(t, request(t, address))
	assert.Equal(t, http.StatusUnauthorized, code)
	r := request(t, address+"metrics")
	r.Header.Set("Authorization", "Bearer 0123456789abcdef")
	code, body := fetch(t, r)
	assert.Equal(t, http.StatusOK, code)
	assert.Contains(t, body, "docent_tree_up ")
}

func TestServeRefusesWrongSettings(t *testing.T) {
	t.Parallel()
	short, spaces := filepath.Join(t.TempDir(), "short"), filepath.Join(t.TempDir(), "spaces")
	writeFile(t, short, "secret\n", 0o600)
	writeFile(t, spaces, "0123456789 abcdef\n", 0o600)
	const open = ": other machines can reach this address: give --token-file or --trust-header"
	for line, want := range map[string]string{
		"serve /a /b":                     "want one path at most: see docent serve --help",
		"serve -- true":                   "docent serve runs no command: leave out --",
		"serve a":                         `framework: invalid path "a": it does not start with a slash`,
		"serve --listen :0":               "--listen :0" + open,
		"serve --listen 0.0.0.0:0":        "--listen 0.0.0.0:0" + open,
		"serve --listen example.com:0":    "--listen example.com:0" + open,
		"serve --listen [::]:0":           "--listen [::]:0" + open,
		"serve --listen 8480":             "--listen: address 8480: missing port in address",
		"serve --interval 1ms":            "--interval 1ms: want 100ms or more",
		"serve --trust-header=":           `--trust-header "": not the name of a header`,
		"serve --trust-header a:b":        `--trust-header "a:b": not the name of a header`,
		"serve --token-file /nonexistent": "--token-file: open /nonexistent: no such file or directory",
		"serve --token-file " + short:     "--token-file " + short + ": want a token of 16 characters or more",
		"serve --token-file " + spaces + " /a": "--token-file " + spaces +
			": want a token of printable ASCII characters without spaces",
	} {
		code, out, errs := finish(t, append([]string{"--connect", "127.0.0.1:1"}, strings.Fields(line)...)...)
		assert.Equal(t, exitUsage, code, line)
		assert.Empty(t, out)
		assert.Equal(t, "docent: "+want+"\n", errs)
	}
	_, address := serves(t)
	taken := strings.TrimSuffix(strings.TrimPrefix(address, "http://"), "/")
	code, _, errs := finish(t, connected("serve", "--listen", taken)...)
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errs, "docent: --listen: ")
}
