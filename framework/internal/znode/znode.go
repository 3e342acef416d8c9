// Package znode knows the syntax of paths and node names: what a server accepts, how a namespace is put in front and
// taken off again, and how the name of a node tells who created it. All of it is pure: no connection, no state.
//
// (Curator: ZKPaths, ProtectedUtils, and NamespaceImpl as far as names go; ZooKeeper: PathUtils.)
package znode

import "strings"

// Join returns the full path of path in namespace: "/ns" and "/a" make "/ns/a", "/ns" and "/" make "/ns".
// The namespace is a valid path, or "" for none, which leaves path as it is. Use [JoinPrefix] for sequential creates.
func Join(namespace, path string) string {
	if path == "/" && namespace != "" {
		return namespace
	}
	return JoinPrefix(namespace, path)
}

// JoinPrefix is [Join] for the path of a sequential create, to which the server appends digits. It keeps the final slash:
// "/ns" and "/" make "/ns/", because "/ns" would create "/ns0000000001", outside the namespace.
func JoinPrefix(namespace, path string) string {
	return strings.TrimSuffix(namespace, "/") + path
}

// Strip undoes [Join]: it returns path as seen from within namespace. A path outside the namespace, and any path if the
// namespace is "", comes back unchanged; "/nsx/a" is outside of "/ns".
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
