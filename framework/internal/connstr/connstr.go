// Package connstr parses connection strings: a list of servers and the path that a client uses as
// its root.
//
//	a:2181,[::1]:2181,b/chroot/path
//
// It accepts what the clients of ZooKeeper accept and gives it the same meaning. It refuses some
// strings with which those clients go on although they cannot be meant. A comma always separates
// servers; a chroot cannot contain one.
//
// (ZooKeeper: ConnectStringParser.)
package connstr

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"unicode"

	"github.com/docent-zk/docent/framework/internal/znode"
)

const (
	defaultPort = 2181
	maxPort     = 65535
)

// Spec is the content of a connection string. The Spec returned with an error is empty.
type Spec struct {
	Servers []string // host:port, at least one, in the order given; an IPv6 address is in brackets and canonical
	Chroot  string   // "", or a valid path other than "/"
}

// String returns a connection string that [Parse] turns into the same Spec.
func (s Spec) String() string {
	return strings.Join(s.Servers, ",") + s.Chroot
}

// Parse parses a connection string: servers separated by commas, optionally with spaces around
// them, and optionally a chroot after the last server. A server is a host name, an IPv4 address or
// an IPv6 address in brackets. A port follows unless it is 2181. A chroot of "/" means none.
//
// An error names the string and the server or the chroot that is wrong. These are errors:
//
//   - no server, an empty server, or a server that is given twice
//   - a missing host, or a host with a character that host names do not have
//   - an IPv6 address without brackets
//   - a port that is not a number from 1 to 65535
//   - a URL
//   - a chroot before the last server
//   - a chroot that is not a valid path; that error matches znode.ErrInvalid
func Parse(s string) (Spec, error) {
	spec, err := parse(s)
	if err != nil {
		return Spec{}, fmt.Errorf("connection string %q: %w", s, err)
	}
	return spec, nil
}

func parse(s string) (Spec, error) {
	if trim(s) == "" {
		return Spec{}, errors.New("it names no server")
	}
	var spec Spec
	entries := strings.Split(s, ",")
	for i, entry := range entries {
		server, chroot := cutChroot(trim(entry))
		if err := checkEntry(server, chroot, i, len(entries)); err != nil {
			return Spec{}, err
		}
		if err := spec.add(server); err != nil {
			return Spec{}, err
		}
		spec.Chroot = chroot
	}
	return spec.checkChroot()
}

// trim removes spaces only. Other white space is more likely a mistake and is reported.
func trim(s string) string {
	return strings.Trim(s, " ")
}

// cutChroot splits an entry before its first slash.
func cutChroot(entry string) (server, chroot string) {
	if i := strings.IndexByte(entry, '/'); i >= 0 {
		return entry[:i], entry[i:]
	}
	return entry, ""
}

// checkEntry checks the form of entry i of n.
func checkEntry(server, chroot string, i, n int) error {
	switch {
	case strings.HasSuffix(server, ":") && strings.HasPrefix(chroot, "//"):
		return fmt.Errorf("%q: a connection string is not a URL, write host:port", server+"//")
	case server == "" && chroot != "":
		return fmt.Errorf("no server before the chroot %q", chroot)
	case server == "":
		return fmt.Errorf("server %d of %d is empty", i+1, n)
	case chroot != "" && i < n-1:
		return fmt.Errorf("chroot %q after server %q: only the last server can have one", chroot, server)
	}
	return nil
}

// add appends a server in its canonical form.
func (s *Spec) add(server string) error {
	canonical, err := parseServer(server)
	if err != nil {
		return fmt.Errorf("server %q: %w", server, err)
	}
	for _, other := range s.Servers {
		if strings.EqualFold(other, canonical) {
			return fmt.Errorf("server %q: %s is given twice", server, other)
		}
	}
	s.Servers = append(s.Servers, canonical)
	return nil
}

func (s Spec) checkChroot() (Spec, error) {
	if s.Chroot == "" || s.Chroot == "/" {
		s.Chroot = ""
		return s, nil
	}
	if err := znode.ValidatePath(s.Chroot); err != nil {
		return Spec{}, fmt.Errorf("chroot: %w", err)
	}
	return s, nil
}

func parseServer(server string) (string, error) {
	host, port, err := splitServer(server)
	if err != nil {
		return "", err
	}
	number, err := parsePort(port)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(host, strconv.Itoa(number)), nil
}

// splitServer returns the checked host without brackets and the port with its colon. The port is ""
// if there is none.
func splitServer(server string) (host, port string, err error) {
	if strings.HasPrefix(server, "[") {
		return splitBracketed(server)
	}
	i := strings.IndexByte(server, ':')
	if i < 0 {
		return server, "", checkHost(server)
	}
	host, port = server[:i], server[i:]
	if strings.Contains(port[1:], ":") {
		return "", "", errors.New("more than one colon; an IPv6 address needs brackets, like [::1]:2181")
	}
	return host, port, checkHost(host)
}

func splitBracketed(server string) (host, port string, err error) {
	host, port, closed := strings.Cut(server[1:], "]")
	if !closed {
		return "", "", errors.New("the bracket is not closed")
	}
	if port != "" && port[0] != ':' {
		return "", "", fmt.Errorf("%q after the bracket is not a port", port)
	}
	address, err := netip.ParseAddr(host)
	if err != nil || !address.Is6() {
		return "", "", fmt.Errorf("%q in brackets is not an IPv6 address", host)
	}
	return address.String(), port, checkCharacters("zone", address.Zone())
}

func checkHost(host string) error {
	if host == "" {
		return errors.New("no host")
	}
	return checkCharacters("host", host)
}

// checkCharacters accepts letters and digits of any script, because names may be internationalized.
// It accepts the underscore because container networks use it in names.
func checkCharacters(what, s string) error {
	for _, r := range s {
		if !unicode.In(r, unicode.Letter, unicode.Mark, unicode.Digit) && !strings.ContainsRune("-_.", r) {
			return fmt.Errorf("%s %q has the character %U", what, s, r)
		}
	}
	return nil
}

// parsePort parses a port with its colon.
func parsePort(port string) (int, error) {
	if port == "" {
		return defaultPort, nil
	}
	port = port[1:]
	if port == "" {
		return 0, errors.New("the port is empty")
	}
	number, err := strconv.ParseUint(port, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange), err == nil && (number < 1 || number > maxPort):
		return 0, fmt.Errorf("port %s is out of range 1-%d", port, maxPort)
	case err != nil:
		return 0, fmt.Errorf("port %q is not a number", port)
	}
	return int(number), nil
}
