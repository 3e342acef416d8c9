package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/inspect"
)

// view is an object as the commands print it in JSON: an inspect.Object, whose tags name the fields, and
// ages.
type view struct {
	*inspect.Object
	Nodes      []nodeView `json:"nodes,omitempty"`
	AgeSeconds *float64   `json:"age_seconds,omitempty"` // of the oldest node; nil: there is none
	Missing    bool       `json:"missing,omitempty"`     // there is no node at the path
}

// nodeView is a node of a view.
type nodeView struct {
	inspect.Node
	AgeSeconds float64 `json:"age_seconds"`
}

// viewOf returns the view of an object.
func viewOf(o *inspect.Object) view {
	v := view{Object: o}
	o.At = o.At.UTC()
	for _, n := range o.Nodes {
		v.Nodes = append(v.Nodes, nodeViewOf(o, n))
	}
	if age := oldest(o); age >= 0 {
		inSeconds := seconds(age)
		v.AgeSeconds = &inSeconds
	}
	return v
}

func nodeViewOf(o *inspect.Object, n inspect.Node) nodeView {
	toUTC(&n)
	return nodeView{n, seconds(o.Age(n))}
}

// toUTC has the times of a node be in UTC, which is for JSON.
func toUTC(n *inspect.Node) { n.Since, n.HeldSince = n.Since.UTC(), n.HeldSince.UTC() }

// oldest returns the age of the oldest node of an object that was read, or -1.
func oldest(o *inspect.Object) time.Duration {
	age := time.Duration(-1)
	for _, n := range o.Nodes {
		age = max(age, ageOf(o, n))
	}
	return age
}

// ageOf returns the age of a node, or -1 if it is not known.
func ageOf(o *inspect.Object, n inspect.Node) time.Duration {
	if n.Since.IsZero() {
		return -1
	}
	return o.Age(n)
}

// kindText returns the kind of an object, with ? if other programs make such nodes, too.
func kindText(o *inspect.Object) string {
	if o.Sure || o.Kind == inspect.KindEmpty || o.Kind == inspect.KindUnknown {
		return string(o.Kind)
	}
	return string(o.Kind) + "?"
}

// stateText returns the state of an object, or its value.
func stateText(o *inspect.Object) string {
	if o.State == "" && o.Value != nil {
		return "= " + strconv.FormatInt(*o.Value, 10)
	}
	return string(o.State)
}

// holdersText returns the number of holders, and the limit if there is one.
func holdersText(o *inspect.Object) string {
	if o.Limit != nil {
		return fmt.Sprintf("%d of %d", o.Holders, *o.Limit)
	}
	return strconv.Itoa(o.Holders)
}

// isLock reports whether nodes hold an object against others, and can be revoked and broken.
func isLock(o *inspect.Object) bool {
	return slices.Contains([]inspect.Kind{
		inspect.KindMutex, inspect.KindRWLock, inspect.KindSemaphore, inspect.KindLatch,
	}, o.Kind)
}

// mostClients is how many clients of an object are named in a cell.
const mostClients = 3

// clientsText returns the clients that hold an object.
func clientsText(o *inspect.Object) string {
	var clients []string
	for _, n := range o.Nodes {
		if n.Holds && len(clients) < mostClients {
			clients = append(clients, cmp.Or(clientText(n), "?"))
		}
	}
	if more := o.Holders - len(clients); more > 0 && len(clients) > 0 {
		clients = append(clients, fmt.Sprintf("%d more", more))
	}
	return strings.Join(clients, ", ")
}

// clientText returns what a node says about its client: process and host, an address, an id, or its data.
func clientText(n inspect.Node) string {
	at := n.Host
	if n.Port != 0 {
		at = net.JoinHostPort(n.Host, strconv.Itoa(n.Port))
	}
	switch {
	case n.Err != "":
		return "not read: " + n.Err
	case n.Revoked:
		return "asked to release" // which has replaced the data
	case n.Process != "":
		return recipes.Identity{Host: n.Host, Process: n.Process, PID: n.PID}.String()
	case n.ID != "" && at != "":
		return n.ID + " at " + at
	case n.ID+at != "":
		return n.ID + at
	}
	return n.Data
}

// tokenText returns a token as docent lock gives it to its command, and as ZooKeeper's tools show it.
func tokenText(token inspect.ID) string {
	if token == 0 {
		return "-"
	}
	return fmt.Sprintf("%d (%v)", int64(token), token)
}

// sessionText returns the id of a session, or that there is none.
func sessionText(n inspect.Node) string {
	if n.Session == 0 {
		return "-"
	}
	return n.Session.String()
}

// nameOf returns the name of a node.
func nameOf(n inspect.Node) string { return nodeName(n.Path) }

// nodeName returns the last part of a path.
func nodeName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// unique matches the beginning of a node's name by which its client finds it again.
var unique = regexp.MustCompile(`^(_c_)?[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}-?`)

// shortNameOf returns the name without that. It has the number of the node, so no other node of a queue
// has it.
func shortNameOf(n inspect.Node) string {
	return cmp.Or(unique.ReplaceAllString(nameOf(n), ""), nameOf(n))
}

// sinceText returns a time and its age.
func sinceText(at time.Time, age time.Duration) string {
	return fmt.Sprintf("%s, %s ago", timeText(at), ageText(age))
}

// heldText returns since when a node holds.
func heldText(o *inspect.Object, n inspect.Node) string {
	switch {
	case n.HeldSince.IsZero():
		return "since an unknown time after that"
	case n.HeldSince.Equal(n.Since):
		return "since then"
	}
	return "at the latest since " + sinceText(n.HeldSince, max(0, o.At.Sub(n.HeldSince)))
}

// ofQueue matches the paths of nodes of queues.
var ofQueue = regexp.MustCompile(
	`^(/.+?)(?:/leases)?/[^/]*(?:lock-|lease-|latch-|__READ__|__WRIT__|lock__)-?[0-9]{9,10}$`)

// lockOf returns the path of the lock that the node at a path is of, or "" if it is not of a queue.
func lockOf(path string) string {
	if match := ofQueue.FindStringSubmatch(path); match != nil {
		return match[1]
	}
	return ""
}

// missing returns the error that there is no node at a path, if err is that, or err.
func missing(path string, err error) error {
	if !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	return coded{fmt.Errorf("%s: there is no such node; a lock that is free may have none", path), exitNoNode}
}
