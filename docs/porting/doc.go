// Package porting has no code except tests. The Go fragments of docs/porting-from-curator.md,
// docs/migration.md and docs/deploying.md run here, most of them as examples. A test compares the
// pages with these fragments, and with the Java fragments in test/interop/java/fragments.
package porting
