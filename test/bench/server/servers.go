package main

import (
	"context"
	"errors"
	"os"
	"runtime/pprof"
	"time"

	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/ensemble"
)

// server is a running server.
type server struct {
	name  string
	addr  string
	close func() error
}

// fullCompiler reverts the option by which package ensemble starts faster. Java reads this variable
// last.
const fullCompiler = "-XX:TieredStopAtLevel=4"

func startReal(ctx context.Context) (*server, error) {
	if err := os.Setenv("_JAVA_OPTIONS", fullCompiler); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	// With more requests in flight, of all clients, the server stops reading for a while.
	e, err := ensemble.New(ctx, 1, ensemble.WithConfig("globalOutstandingLimit", "100000"))
	if err != nil {
		return nil, err
	}
	return &server{name: "real server", addr: e.Servers()[0].Addr(), close: e.Close}, nil
}

func startFake() (*server, error) {
	s, err := zktest.New()
	if err != nil {
		return nil, err
	}
	return &server{name: "zktest", addr: s.Addr(), close: func() error {
		s.Close()
		return nil
	}}, nil
}

// runProfiled writes a profile of zktest, together with its clients.
func runProfiled(ctx context.Context, rounds int, long time.Duration, file string) (err error) {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	fake, err := startFake()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fake.close()) }()
	if err := pprof.StartCPUProfile(f); err != nil {
		return err
	}
	results, err := measure(ctx, []*server{fake}, rounds, long)
	pprof.StopCPUProfile()
	if err != nil {
		return err
	}
	report(os.Stdout, results)
	return nil
}
