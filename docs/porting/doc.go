// Package porting has no code but its tests: the Go fragments of docs/porting-from-curator.md and docs/migration.md run here as examples, and a
// test compares the pages with them, and with the Java fragments in test/interop/java/fragments.
package porting
