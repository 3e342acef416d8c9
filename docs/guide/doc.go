// Package guide has no code except tests. The Go fragments of the README, of docs/concepts.md, of
// docs/recipes.md, of docs/guarantees.md and of docs/observability.md run here. Tests compare all pages
// with the code that they show, check their links, and compare the pages in English with those in
// Chinese.
package guide
