// Package signal has the channel of what has ended already.
package signal

// Closed is a channel that is closed.
var Closed <-chan struct{} = func() chan struct{} { c := make(chan struct{}); close(c); return c }()
