// Package fixtures has no code except tests. The files beside it are shown in docs/testing.md. They
// are what a project needs to run its own tests against the server of package zktest, in Java,
// Python and Go. The tests run all of them, and compare the page with them.
package fixtures
