package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/docent-zk/docent/cmd/docent/internal/page"
	"github.com/docent-zk/docent/framework"
)

func serveCommand() *cli.Command {
	return &cli.Command{
		Name:      "serve",
		Usage:     "show locks, queues, sessions and deadlocks on a page",
		UsageText: "docent serve [options] [ROOT]",
		Description: text(`
			docent serve shows the locks at and below ROOT on a page for browsers: what holds each of them and since
			when, what waits in which order, which sessions wait for each other. The page follows changes. ROOT is /
			by default.

			docent only reads, unless --write is given. It sets one watch on ROOT, and reads what changes, at most
			every --interval, and only while a page is open or metrics are scraped.

			Other addresses:
			  /metrics   numbers of locks, holders and waiters, for Prometheus; a scrape counts as a look at the page
			  /healthz   200 while the process lives
			  /readyz    200 while the ZooKeeper servers answer

			The page shows names of hosts, processes and locks. So it is for this machine only, and for requests to
			the name localhost, unless it asks for a token or trusts a reverse proxy:
			  --token-file    browsers ask for it as a password, of any user; others send it as a bearer token
			  --trust-header  the proxy sets this header to the name of the user; only the proxy may reach the page
			There is no TLS: without a proxy that has it, everything on the way can read the token.

			Examples:
			  docent serve                                  # http://127.0.0.1:8480/
			  docent serve --write /locks                   # with buttons to ask a holder, and to break a lock
			  ssh -L 8480:127.0.0.1:8480 operator@host      # and look at the page of that host
			  docent serve --listen :8480 --token-file /etc/docent/token
			  docent serve --trust-header X-Forwarded-User --host locks.example.com

			docent ends with SIGTERM and SIGINT, and closes the pages that are open.

`) + serveExitCodes,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "listen", Usage: "serve on this `ADDRESS`; port 0 is any", Value: "127.0.0.1:8480"},
			&cli.DurationFlag{
				Name: "interval", Value: 2 * time.Second,
				Usage: "the `TIME` between the begins of two readings, at least",
			},
			&cli.BoolFlag{Name: "always", Usage: "read while no page is open, too"},
			&cli.BoolFlag{Name: "write", Usage: "permit to ask holders for a release, and to break locks"},
			&cli.StringFlag{Name: "token-file", Usage: "a `FILE` with the token to ask for, of 16 characters or more"},
			&cli.StringFlag{Name: "trust-header", Usage: "the `NAME` of the header with the user, set by a proxy"},
			&cli.StringSliceFlag{
				Name: "host", Usage: "a `NAME` by which the page is addressed, beside localhost; may be repeated",
			},
		},
		Action: func(ctx context.Context, c *cli.Command) error { return serve(ctx, c) },
	}
}

// serveExitCodes is the part of the help text about exit codes.
const serveExitCodes = `Exit codes:
  0    ended by SIGTERM or SIGINT
  64   a wrong flag, argument or configuration file
  70   another failure, such as an address that is in use`

const (
	// shutdownTime is for how long requests under way may take at the end.
	shutdownTime = 5 * time.Second
	// minToken is how long a token must be.
	minToken = 16
)

// serve carries out docent serve.
func serve(ctx context.Context, c *cli.Command) error {
	settings, err := pageSettings(c)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	client, err := newClient(c)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.String("listen"))
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	pages, err := page.New(client, settings)
	if err != nil {
		_ = listener.Close()
		return usageError{err}
	}
	defer pages.Close()
	_, _ = fmt.Fprintf(c.Root().ErrWriter, "docent: the page of %s is http://%s/\n", settings.Root, listener.Addr())
	server := &http.Server{
		Handler: pages, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(settings.Log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	stop() // a second signal ends the process at once
	pages.Close()
	within, cancel := context.WithTimeout(context.Background(), shutdownTime)
	defer cancel()
	if err := server.Shutdown(within); err != nil {
		_ = server.Close()
	}
	<-failed
	return nil
}

// pageSettings returns the settings of the page by the flags.
func pageSettings(c *cli.Command) (s page.Settings, err error) {
	root := "/"
	switch {
	case c.Args().Len() > 1:
		return s, usagef("want one path at most: see %s --help", c.FullName())
	case c.Args().Present():
		root = c.Args().First()
	}
	s = page.Settings{
		Root: root, Interval: c.Duration("interval"), Always: c.Bool("always"), Write: c.Bool("write"),
		TrustHeader: c.String("trust-header"), Hosts: c.StringSlice("host"), Log: serveLogger(c.Root().ErrWriter),
	}
	if err := framework.CheckPath(root); err != nil {
		return s, usageError{err}
	}
	if s.Interval < 100*time.Millisecond {
		return s, usagef("--interval %v: want 100ms or more", s.Interval)
	}
	if c.IsSet("trust-header") && !headerName.MatchString(s.TrustHeader) {
		return s, usagef("--trust-header %q: not the name of a header", s.TrustHeader)
	}
	if c.IsSet("token-file") {
		if s.Token, err = readToken(c.String("token-file")); err != nil {
			return s, err
		}
	}
	local, err := isLoopback(c.String("listen"))
	switch {
	case err != nil:
		return s, err
	case local:
		s.Hosts = append(s.Hosts, "localhost", "127.0.0.1", "::1")
		if host, _, _ := net.SplitHostPort(c.String("listen")); host != "" {
			s.Hosts = append(s.Hosts, host)
		}
	case s.Token == "" && s.TrustHeader == "":
		return s, usagef("--listen %s: other machines can reach this address: give --token-file or --trust-header",
			c.String("listen"))
	}
	return s, nil
}

// headerName matches names of headers.
var headerName = regexp.MustCompile(`^[A-Za-z0-9-]+$`)

// isLoopback reports whether only this machine can reach an address.
func isLoopback(address string) (bool, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false, usagef("--listen: %w", err)
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback(), nil
}

// readToken returns the token in a file.
func readToken(name string) (string, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return "", usagef("--token-file: %w", err)
	}
	token := string(bytes.TrimSpace(content))
	switch {
	case len(token) < minToken:
		return "", usagef("--token-file %s: want a token of %d characters or more", name, minToken)
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", usagef("--token-file %s: want a token of printable ASCII characters without spaces", name)
	}
	return token, nil
}

func serveLogger(errs io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(errs, nil)) }
