// Package group is the membership of processes in a group: each member has a node below the path of
// the group, with its id as name and its payload as data.
//
//	member, err := group.Join(ctx, client, "/workers", "host-3", []byte("10.0.0.3:8080"))
//	...
//	defer member.Close()
//
//	for change, err := range group.Observe(ctx, client, "/workers") {
//
// A member stays through lost connections and lost sessions: its node is a [persistent.Node]. The
// others see it leave when its session expires, and join when it has the next one. [Members] lists
// the members, [Observe] follows them. Neither needs to be a member.
//
// # Ids
//
// An id belongs to one member at a time. [Join] with an id that is in use fails with [ErrIDInUse],
// at once in the same client. For another client it waits for twice the session timeout, because a
// process that crashed shortly before has left its node for that time: see [WithWait]. A member
// whose id was taken by another process while its session was lost ends with ErrIDInUse.
//
// # The group
//
// The path of the group is created as a container. When the group is empty the servers delete it
// after some time, and the next member creates it again. A group whose path does not exist is
// empty.
//
// # Other programs
//
// Curator's GroupMember has the same nodes, and Java and Go members see each other. kazoo's Party
// has others: see [WithKazooNames]. To choose one of the processes, use package leader.
package group
