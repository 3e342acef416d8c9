// Package testlock has what the tests of all recipes share: acquires on other goroutines, faults for
// simulations, a model that finds two holders, and lists of requests.
package testlock
