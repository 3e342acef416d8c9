// Service is a program as Go programs in production are built: several processes of it run, and one of
// them at a time works, under a mutex. It has health checks, metrics for Prometheus, traces of
// OpenTelemetry, and logs of log/slog. At SIGTERM it finishes the job that it has begun under the lock,
// and then hands the lock over.
//
//	cd examples/service
//	go run . -connect 127.0.0.1:2181 -listen 127.0.0.1:8080     # SIGTERM or Ctrl-C ends it
//	curl http://127.0.0.1:8080/readyz
//	curl http://127.0.0.1:8080/metrics
//
// Without -connect it starts a test server in its process. service.go starts and stops the parts in the
// right order. worker.go takes one job after another under the lock. health.go has the health checks,
// and telemetry.go metrics, traces and logs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/docent-zk/docent/zktest"
)

func main() { os.Exit(runMain(os.Args[1:], os.Stdout, os.Stderr)) }

// runMain returns the exit code. The logs go to stdout.
func runMain(args []string, stdout, stderr io.Writer) int {
	cfg, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return 2 // parse has printed it
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	logger := slog.New(slog.NewJSONHandler(stdout, nil))
	if err := start(ctx, cfg, logger); err != nil {
		logger.Error("the service has failed", "error", err)
		return 1
	}
	logger.Info("the service has stopped")
	return 0
}

// config has the values of the command line.
type config struct {
	connect string
	listen  string
	session time.Duration
	grace   time.Duration // for the job that has begun at SIGTERM
	job     job
}

func parse(args []string, stderr io.Writer) (config, error) {
	var cfg config
	var length time.Duration
	flags := flag.NewFlagSet("service", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&cfg.connect, "connect", "", "ZooKeeper servers, `host:port[,host:port][/chroot]`")
	flags.StringVar(&cfg.listen, "listen", "127.0.0.1:0", "the `address` of /livez, /readyz and /metrics")
	flags.DurationVar(&cfg.session, "session", 10*time.Second, "session timeout")
	flags.DurationVar(&cfg.grace, "grace", 20*time.Second, "how long a job may go on after SIGTERM")
	flags.DurationVar(&length, "job", time.Second, "how long a job takes")
	err := flags.Parse(args)
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
		fmt.Fprintln(stderr, err)
	}
	cfg.job = sleepFor(length)
	return cfg, err
}

// start runs the service, with a server in this process if the configuration names none.
func start(ctx context.Context, cfg config, logger *slog.Logger) error {
	if cfg.connect == "" {
		server, err := zktest.New()
		if err != nil {
			return err
		}
		defer server.Close()
		cfg.connect = server.Addr()
	}
	listener, err := net.Listen("tcp", cfg.listen)
	if err != nil {
		return err
	}
	s, err := newService(cfg, logger)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	return s.run(ctx, listener)
}
