// Package porting has no code except tests. The Go fragments of docs/porting-from-curator.md and
// docs/migration.md run here as examples. A test compares the pages with these fragments, and with
// the Java fragments in test/interop/java/fragments.
package porting
