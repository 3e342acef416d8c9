// Package fixtures has no code but its tests. The files beside it are those of docs/testing.md: what a project needs to
// run its own tests against the server of package zktest, in Java, Python and Go. The tests run them all, and compare
// the page with them.
package fixtures
