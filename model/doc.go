// Package model has models of the queue, the locks and the hold, in Promela, which SPIN checks
// completely within bounds: see docs/model.md. The test of the package runs the checks. It needs SPIN and
// a C compiler, so it has the build tag model: run "make model".
package model
