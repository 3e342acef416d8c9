package main

import (
	"github.com/docent-zk/docent/zktest"
)

// startServer returns the connection string of the servers to use, and what ends them. If the user named some, nothing is started. Else
// this process is the server, for itself and its workers.
func startServer(given string, say *narrator) (connect string, stop func(), err error) {
	if given != "" {
		return given, func() {}, nil
	}
	srv, err := zktest.New()
	if err != nil {
		return "", nil, err
	}
	say.Line("Started an in-process ZooKeeper server (package zktest, not the real one) at %s.", srv.Addr())
	return srv.Addr(), srv.Close, nil
}
