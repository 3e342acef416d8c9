package zktest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/internal/proto"
	"github.com/docent-zk/docent/zktest/internal/tree"
)

// The state without a client. The methods below act like requests of a client with all permissions:
// they make transactions, send events to watching clients, and return the same errors, which are of
// type [Code]. They need no session and work while the server is stopped.

// Stat is the server's data about a node. Times are milliseconds since 1970.
type Stat struct {
	Czxid, Mzxid                int64 // the transactions that created it and that last set its data
	Ctime, Mtime                int64 // the times of these transactions
	Version, Cversion, Aversion int32 // changes of its data, children and ACL
	EphemeralOwner              int64 // the session of an ephemeral node, or 0
	DataLength, NumChildren     int32
	Pzxid                       int64 // the transaction that last created or deleted a child
}

// checkPath returns an error that is clearer than the server's answer to a client.
func checkPath(verb, path string) error {
	if !tree.Valid(path) {
		return fmt.Errorf("zktest: %s %q: want a path like /a/b: %w", verb, path, BadArguments)
	}
	return nil
}

// Get returns the data of a node, nil if it is null.
func (s *Server) Get(path string) ([]byte, error) {
	if err := checkPath("get", path); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	data, _, code := s.tree.Data(path, super)
	return slices.Clone(data), problem("get", path, code)
}

// Stat returns the Stat of a node.
func (s *Server) Stat(path string) (Stat, error) {
	if err := checkPath("stat", path); err != nil {
		return Stat{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	stat, code := s.tree.Exists(path, super)
	if code != proto.OK {
		return Stat{}, problem("stat", path, code)
	}
	return Stat{
		stat.Czxid, stat.Mzxid, stat.Ctime, stat.Mtime, stat.Version, stat.Cversion, stat.Aversion,
		stat.EphemeralOwner, stat.DataLength, stat.NumChildren, stat.Pzxid,
	}, nil
}

// Exists reports whether the node exists. It panics if path is not a valid path, because such a
// test would show nothing.
func (s *Server) Exists(path string) bool {
	_, err := s.Stat(path)
	if errors.Is(err, BadArguments) {
		panic(err.Error())
	}
	return err == nil
}

// Children returns the names of a node's children, sorted.
func (s *Server) Children(path string) ([]string, error) {
	if err := checkPath("children", path); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	names, _, code := s.tree.Children(path, super)
	slices.Sort(names)
	return names, problem("children", path, code)
}

// Create creates a persistent node with all permissions for every client. It creates missing
// parents with empty data.
func (s *Server) Create(path string, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.create(path, data)
}

func (s *Server) create(path string, data []byte) error {
	if err := checkPath("create", path); err != nil {
		return err
	}
	if above := tree.Parent(path); above != "" && s.tree.Watched(above) == nil {
		if err := s.create(above, []byte{}); err != nil {
			return err
		}
	}
	return s.do("create", &proto.Request{Op: fault.OpCreate, Path: path, Data: slices.Clone(data), ACL: open})
}

// Set replaces the data of a node, whatever its version.
func (s *Server) Set(path string, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.do("set", &proto.Request{Op: fault.OpSetData, Path: path, Data: slices.Clone(data), Version: -1})
}

// Delete deletes a node and all nodes below it, the lowest first. Deleting / deletes everything
// except /zookeeper and / itself.
func (s *Server) Delete(path string) error {
	if err := checkPath("delete", path); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if path == "/" {
		return s.deleteBelow(path)
	}
	return s.delete(path)
}

func (s *Server) delete(path string) error {
	if err := s.deleteBelow(path); err != nil {
		return err
	}
	return s.do("delete", &proto.Request{Op: fault.OpDelete, Path: path, Version: -1})
}

func (s *Server) deleteBelow(path string) error {
	names, _, _ := s.tree.Children(path, super)
	slices.Sort(names)
	for _, name := range names {
		if below := strings.TrimSuffix(path, "/") + "/" + name; below != "/zookeeper" {
			if err := s.delete(below); err != nil {
				return err
			}
		}
	}
	return nil
}

// SetSequence sets the number of the next sequential child of a node, for tests of what happens
// when numbers run out. It makes no transaction, and a real server cannot do it.
func (s *Server) SetSequence(path string, next int32) error {
	return s.adjust("set the sequence of", path, func(t *tree.Tree) error { return t.SetSequence(path, next) })
}

// SetVersion sets the version of a node's data, for tests of what happens after 2^31 writes. It makes
// no transaction, and a real server cannot do it.
func (s *Server) SetVersion(path string, version int32) error {
	return s.adjust("set the version of", path, func(t *tree.Tree) error { return t.SetVersion(path, version) })
}

// adjust changes a node on all servers without a transaction.
func (s *Server) adjust(verb, path string, change func(*tree.Tree) error) error {
	if err := checkPath(verb, path); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := change(s.tree); err != nil {
		return fmt.Errorf("zktest: %w", err)
	}
	for _, r := range s.replicas {
		if r.tree != s.tree {
			// A server without the node ignores it, and later learns only of the node's children.
			_ = change(r.tree)
		}
	}
	return nil
}

var open = []proto.ACL{{Perms: proto.PermAll, Scheme: "world", ID: "anyone"}}

func (s *Server) do(verb string, req *proto.Request) error {
	out := s.execute(req, tree.Caller{IDs: super})
	s.record(s.clients[0], 0, Entry{What: verb, Path: req.Path, Code: Code(out.Code), Note: "by the test"})
	return problem(verb, req.Path, out.Code)
}

func problem(verb, path string, code proto.Code) error {
	if code == proto.OK {
		return nil
	}
	return fmt.Errorf("zktest: %s %q: %w", verb, path, Code(code))
}

// Load creates nodes, parents first, or sets the data of those that exist. The keys are paths. It
// stops at the first error.
func (s *Server) Load(nodes map[string]string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, path := range slices.Sorted(maps.Keys(nodes)) {
		err := s.create(path, []byte(nodes[path]))
		if err != nil && s.tree.Watched(path) != nil {
			err = s.do("set", &proto.Request{Op: fault.OpSetData, Path: path, Data: []byte(nodes[path]), Version: -1})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Tree returns a line for each node, sorted, without the nodes that every server has. A line has
// the path, and the data as a Go string if there is any. It has the kind of a node that is not
// persistent, and an ACL that does not give all permissions to every client. It is meant for
// comparisons with what a test expects. An ephemeral node shows the name of its session's client,
// or the session's name if the client has none. If node names contain random ids, compare the
// result of [Canonical].
func (s *Server) Tree() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, path := range s.tree.Paths() {
		if path != "/" && path != "/zookeeper" && !strings.HasPrefix(path, "/zookeeper/") {
			n, _ := s.tree.Look(path)
			fmt.Fprintln(&b, s.describe(n))
		}
	}
	return b.String()
}

func (s *Server) describe(n tree.Node) string {
	line := n.Path
	if len(n.Data) > 0 {
		line += fmt.Sprintf(" %q", n.Data)
	}
	switch n.Kind {
	case "ephemeral":
		line += " ephemeral of " + s.ownerName(n.Owner)
	case "ttl":
		line += fmt.Sprintf(" ttl %dms", n.TTL)
	case "container":
		line += " container"
	}
	if !n.Open {
		line += fmt.Sprintf(" acl %v", n.ACL)
	}
	return line
}

func (s *Server) ownerName(session int64) string {
	if sess := s.sessions[session]; sess != nil && sess.client.name != "" {
		return sess.client.name
	}
	return s.sessionName(session)
}
