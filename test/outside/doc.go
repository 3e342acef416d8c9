// Package outside tests the modules of a release as other modules use them: from a module proxy, without
// replace, and with the versions that scripts/release.sh gives them. The proxy is a folder.
package outside
