// Package znode implements the syntax of paths and node names. It checks paths as a server does,
// adds and removes namespaces, and finds the creator of a node by the node's name. It has no
// connection and no state.
//
// (Curator: ZKPaths, ProtectedUtils, and the names of NamespaceImpl; ZooKeeper: PathUtils.)
package znode

import "strings"

// Join returns the full path of path in namespace: "/ns" and "/a" give "/ns/a", "/ns" and "/" give
// "/ns". The namespace is a valid path, or "" for none, which leaves path unchanged. Use
// [JoinPrefix] for sequential creates.
func Join(namespace, path string) string {
	if path == "/" && namespace != "" {
		return namespace
	}
	return JoinPrefix(namespace, path)
}

// JoinPrefix is [Join] for the path of a sequential create, to which the server appends digits. It
// keeps the final slash: "/ns" and "/" give "/ns/". The path "/ns" would create "/ns0000000001",
// outside the namespace.
func JoinPrefix(namespace, path string) string {
	return strings.TrimSuffix(namespace, "/") + path
}

// Strip reverses [Join]: it returns path relative to namespace. It returns a path outside the
// namespace unchanged, and every path if the namespace is "". "/nsx/a" is outside "/ns".
func Strip(namespace, path string) string {
	if namespace == "" {
		return path
	}
	rest, found := strings.CutPrefix(path, strings.TrimSuffix(namespace, "/"))
	switch {
	case found && rest == "":
		return "/"
	case found && rest[0] == '/':
		return rest
	default:
		return path
	}
}

// Parent returns the path above path: "/a" for "/a/b", "/" for "/a" and for "/" itself.
func Parent(path string) string {
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		return path[:i]
	}
	return "/"
}

// Base returns the last component of path: "b" for "/a/b", "" for "/" and for a path that ends with a slash.
func Base(path string) string {
	return path[strings.LastIndexByte(path, '/')+1:]
}
