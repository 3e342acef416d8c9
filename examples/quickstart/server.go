package main

import (
	"github.com/docent-zk/docent/zktest"
)

// startServer returns the connection string of the servers to use, and a function that stops what
// it started. If given is empty, it starts a server in this process, for this process and its
// workers.
func startServer(given string, report *reporter) (connect string, stop func(), err error) {
	if given != "" {
		return given, func() {}, nil
	}
	srv, err := zktest.New()
	if err != nil {
		return "", nil, err
	}
	report.Line("Started an in-process ZooKeeper server (package zktest, not the real one) at %s.", srv.Addr())
	return srv.Addr(), srv.Close, nil
}
