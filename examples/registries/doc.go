// Package registries shows how programs of other frameworks register themselves in ZooKeeper with
// package discovery: kratos has an adapter for programs of go-kratos, and micro one for go-micro. Both
// are short enough to be copied, with internal/instances, and changed.
//
// The nodes are those of Curator's x-discovery, so programs in Java find the instances, too. What a
// framework has besides a name, an ID and an address is the payload: JSON.
package registries
