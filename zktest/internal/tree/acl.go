package tree

import (
	"crypto/sha1"
	"encoding/base64"
	"net/netip"
	"slices"
	"strings"

	"github.com/docent-zk/docent/zktest/internal/proto"
)

// SuperScheme is the scheme of the identity that has all permissions.
const SuperScheme = "super"

// openACL gives all permissions to every client.
var openACL = []proto.ACL{{Perms: proto.PermAll, Scheme: "world", ID: "anyone"}}

// Digest returns the identity of a user with a password.
func Digest(credentials string) string {
	user, _, _ := strings.Cut(credentials, ":")
	sum := sha1.Sum([]byte(credentials))
	return user + ":" + base64.StdEncoding.EncodeToString(sum[:])
}

// Allowed reports whether one of ids has one of the permissions.
func Allowed(acl []proto.ACL, perms int32, ids []proto.ID) bool {
	for _, id := range ids {
		if id.Scheme == SuperScheme {
			return true
		}
	}
	for _, a := range acl {
		if a.Perms&perms == 0 {
			continue
		}
		if a.Scheme == "world" && a.ID == "anyone" {
			return true
		}
		if slices.ContainsFunc(ids, func(id proto.ID) bool { return matches(a, id) }) {
			return true
		}
	}
	return false
}

func matches(a proto.ACL, id proto.ID) bool {
	if a.Scheme != id.Scheme {
		return false
	}
	if a.Scheme == "ip" {
		return inNetwork(a.ID, id.ID)
	}
	return a.ID == id.ID
}

func inNetwork(network, address string) bool {
	n, err := parseNetwork(network)
	if err != nil {
		return false
	}
	a, err := netip.ParseAddr(address)
	return err == nil && n.Contains(a.Unmap())
}

// parseNetwork also accepts a single address.
func parseNetwork(s string) (netip.Prefix, error) {
	address, bits, found := strings.Cut(plainNumbers(s), "/")
	if !found {
		a, err := netip.ParseAddr(address)
		if err != nil {
			return netip.Prefix{}, err
		}
		return a.Prefix(a.BitLen())
	}
	n, err := netip.ParsePrefix(address + "/" + bits)
	return n.Masked(), err
}

// plainNumbers removes leading zeros from an IPv4 address, which the real server ignores.
func plainNumbers(s string) string {
	if strings.Contains(s, ":") {
		return s
	}
	parts := strings.Split(s, ".")
	for i, part := range parts {
		for len(part) > 1 && part[0] == '0' && part[1] >= '0' && part[1] <= '9' {
			part = part[1:]
		}
		parts[i] = part
	}
	return strings.Join(parts, ".")
}

// resolve returns the ACL to store for one that a client sent. It reports false if the client's ACL
// is invalid.
func (t *Tree) resolve(acl []proto.ACL, ids []proto.ID) ([]proto.ACL, bool) {
	var kept []proto.ACL
	for _, a := range acl {
		if a.Scheme == "auth" {
			own := authenticated(ids)
			if len(own) == 0 {
				return nil, false
			}
			for _, id := range own {
				kept = add(kept, proto.ACL{Perms: a.Perms, Scheme: id.Scheme, ID: id.ID})
			}
			continue
		}
		if !t.validACL(a) {
			return nil, false
		}
		kept = add(kept, a)
	}
	return kept, len(kept) > 0
}

func add(acl []proto.ACL, a proto.ACL) []proto.ACL {
	if slices.Contains(acl, a) {
		return acl
	}
	return append(acl, a)
}

// authenticated returns the identities that were proven by more than an address.
func authenticated(ids []proto.ID) []proto.ID {
	var own []proto.ID
	for _, id := range ids {
		if id.Scheme == "digest" {
			own = append(own, id)
		}
	}
	return own
}

func (t *Tree) validACL(a proto.ACL) bool {
	switch a.Scheme {
	case "world":
		return a.ID == "anyone"
	case "digest":
		parts := strings.Split(a.ID, ":")
		for len(parts) > 0 && parts[len(parts)-1] == "" {
			parts = parts[:len(parts)-1]
		}
		return len(parts) == 2
	case "ip":
		n, err := parseNetwork(a.ID)
		return err == nil && (n.Addr().Is4() || !t.rules.OldIPRules)
	}
	return false
}

// masked returns acl without the hashes of passwords, for clients that may not change it.
func masked(acl []proto.ACL) []proto.ACL {
	shown := slices.Clone(acl)
	for i, a := range shown {
		if user, _, found := strings.Cut(a.ID, ":"); found && a.Scheme == "digest" {
			shown[i].ID = user + ":x"
		}
	}
	return shown
}
