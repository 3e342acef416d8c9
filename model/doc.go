// Package model has models of the queue, the locks and the hold, in Promela, which SPIN checks
// completely within bounds: see docs/model.md. The tests of the package replay walks of the models on the
// code. The checks, and new walks, need SPIN and a C compiler, so they have the build tag model: run
// "make model".
package model
