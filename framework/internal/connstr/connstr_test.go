package connstr

import (
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework/internal/znode"
)

func TestParseReadsServersAndChroot(t *testing.T) {
	tests := []struct {
		in      string
		servers []string
		chroot  string
	}{
		{"a", []string{"a:2181"}, ""},
		{"a:1", []string{"a:1"}, ""},
		{"a:65535", []string{"a:65535"}, ""},
		{"a:02181", []string{"a:2181"}, ""},
		{"a:2181,[::1]:2181,b/chroot/path", []string{"a:2181", "[::1]:2181", "b:2181"}, "/chroot/path"},
		{"c,a,b", []string{"c:2181", "a:2181", "b:2181"}, ""},
		{"a,a:2182", []string{"a:2181", "a:2182"}, ""},
		{" a:1 , b:2 ,c:3 ", []string{"a:1", "b:2", "c:3"}, ""},
		{"a,b/x ", []string{"a:2181", "b:2181"}, "/x"},
		{"a/x y", []string{"a:2181"}, "/x y"},
		{"a/", []string{"a:2181"}, ""},
		{"a:1,b:2/", []string{"a:1", "b:2"}, ""},
		{"127.0.0.1:2181", []string{"127.0.0.1:2181"}, ""},
		{"[::1]", []string{"[::1]:2181"}, ""},
		{"[::1]/x", []string{"[::1]:2181"}, "/x"},
		{"[2001:DB8:0:0:0:0:0:1]:7", []string{"[2001:db8::1]:7"}, ""},
		{"[fe80::1%eth0]:7/x", []string{"[fe80::1%eth0]:7"}, "/x"},
		{"[::ffff:10.0.0.1]", []string{"[::ffff:10.0.0.1]:2181"}, ""},
		{"zoo_1.example-net.org.:2181", []string{"zoo_1.example-net.org.:2181"}, ""},
		{"zürich", []string{"zürich:2181"}, ""},
		{"a/x:1/[y]", []string{"a:2181"}, "/x:1/[y]"},
	}
	for _, tt := range tests {
		t.Run(tt.in, func(t *testing.T) {
			got, err := Parse(tt.in)
			require.NoError(t, err)
			require.Equal(t, Spec{Servers: tt.servers, Chroot: tt.chroot}, got)
		})
	}
}

func TestParseNamesTheOffendingPart(t *testing.T) {
	const twoColons = "more than one colon; an IPv6 address needs brackets, like [::1]:2181"
	tests := []struct{ in, want string }{
		{"", `it names no server`},
		{"  ", `it names no server`},
		{"/", `no server before the chroot "/"`},
		{"/x", `no server before the chroot "/x"`},
		{",", `server 1 of 2 is empty`},
		{"a,,b", `server 2 of 3 is empty`},
		{"a, ,b", `server 2 of 3 is empty`},
		{"a,", `server 2 of 2 is empty`},
		{"a,/x", `no server before the chroot "/x"`},

		{":2181", `server ":2181": no host`},
		{"a b", `server "a b": host "a b" has the character U+0020`},
		{"a :1", `server "a :1": host "a " has the character U+0020`},
		{"a\t", `server "a\t": host "a\t" has the character U+0009`},
		{"a\x00b:1", `server "a\x00b:1": host "a\x00b" has the character U+0000`},
		{"a\u200Bb", `server "a\u200bb": host "a\u200bb" has the character U+200B`},
		{"a\xFF", `server "a\xff": host "a\xff" has the character U+FFFD`},
		{"user@a", `server "user@a": host "user@a" has the character U+0040`},
		{"a;b", `server "a;b": host "a;b" has the character U+003B`},
		{"a]", `server "a]": host "a]" has the character U+005D`},
		{"b /x", `server "b ": host "b " has the character U+0020`},

		{"a:", `server "a:": the port is empty`},
		{"a:/x", `server "a:": the port is empty`},
		{"a:x", `server "a:x": port "x" is not a number`},
		{"a:+1", `server "a:+1": port "+1" is not a number`},
		{"a:-1", `server "a:-1": port "-1" is not a number`},
		{"a: 1", `server "a: 1": port " 1" is not a number`},
		{"a:1\n", `server "a:1\n": port "1\n" is not a number`},
		{"a:0", `server "a:0": port 0 is out of range 1-65535`},
		{"a:65536", `server "a:65536": port 65536 is out of range 1-65535`},
		{"a:99999", `server "a:99999": port 99999 is out of range 1-65535`},
		{"a:99999999999999999999",
			`server "a:99999999999999999999": port 99999999999999999999 is out of range 1-65535`},

		{"::1", `server "::1": ` + twoColons},
		{"::1:2181", `server "::1:2181": ` + twoColons},
		{"fe80::1", `server "fe80::1": ` + twoColons},
		{"a,fe80::1%eth0", `server "fe80::1%eth0": ` + twoColons},
		{"a:1:2", `server "a:1:2": ` + twoColons},
		{"[::1", `server "[::1": the bracket is not closed`},
		{"[::1/x]", `server "[::1": the bracket is not closed`},
		{"[::1]2181", `server "[::1]2181": "2181" after the bracket is not a port`},
		{"[::1]:", `server "[::1]:": the port is empty`},
		{"[::1]:x", `server "[::1]:x": port "x" is not a number`},
		{"[]:1", `server "[]:1": "" in brackets is not an IPv6 address`},
		{"[a]:1", `server "[a]:1": "a" in brackets is not an IPv6 address`},
		{"[127.0.0.1]:1", `server "[127.0.0.1]:1": "127.0.0.1" in brackets is not an IPv6 address`},
		{"[fe80::1%a b]", `server "[fe80::1%a b]": zone "a b" has the character U+0020`},

		{"a,a", `server "a": a:2181 is given twice`},
		{"a,b,a:2181", `server "a:2181": a:2181 is given twice`},
		{"a:1,A:1", `server "A:1": a:1 is given twice`},
		{"[::1]:1,[0::1]:1", `server "[0::1]:1": [::1]:1 is given twice`},

		{"a/x,b", `chroot "/x" after server "a": only the last server can have one`},
		{"a/,b", `chroot "/" after server "a": only the last server can have one`},
		{"a,b/x,y", `chroot "/x" after server "b": only the last server can have one`},
		{"a/x/", `chroot: framework: invalid path "/x/": it ends with a slash`},
		{"a//", `chroot: framework: invalid path "//": empty component at position 1`},
		{"a/x/../y", `chroot: framework: invalid path "/x/../y": component ".." at position 3`},
		{"a/x\n", `chroot: framework: invalid path "/x\n": forbidden character U+000A at position 2`},

		{"zk://a:2181", `"zk://": a connection string is not a URL, write host:port`},
		{"tcp://", `"tcp://": a connection string is not a URL, write host:port`},
		{"a,zk://b/x", `"zk://": a connection string is not a URL, write host:port`},
		{"zk://a:1,b:2/x", `"zk://": a connection string is not a URL, write host:port`},
		{"://a", `"://": a connection string is not a URL, write host:port`},
	}
	for _, tt := range tests {
		t.Run(tt.in, func(t *testing.T) {
			got, err := Parse(tt.in)
			require.ErrorContains(t, err, "connection string \"")
			_, problem, _ := strings.Cut(err.Error(), "\": ")
			require.Equal(t, tt.want, problem)
			require.Zero(t, got)
		})
	}
}

func TestErrorsReadAsAWhole(t *testing.T) {
	_, err := Parse("a:99999")
	require.EqualError(t, err, `connection string "a:99999": server "a:99999": port 99999 is out of range 1-65535`)
}

func TestInvalidChrootIsAnInvalidPath(t *testing.T) {
	_, err := Parse("a/x//y")
	require.ErrorIs(t, err, znode.ErrInvalid)
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "a", "a:2181,[::1]:2181,b/chroot/path", " a:1 , b:2 ", "a,,b", "a/x,b", "::1", "[::1", "[fe80::1%eth0]:7/x",
		"a:99999", "a:0", "a,A", "zk://a:2181", "a//", "a/x/", "[::ffff:1.2.3.4]", "zürich/käse",
		"a\x00", "a\xFF", "ſ,s",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		spec, err := Parse(s)
		if err != nil {
			require.Zero(t, spec)
			return
		}
		require.NotEmpty(t, spec.Servers)
		for _, server := range spec.Servers {
			host, port, err := net.SplitHostPort(server)
			require.NoError(t, err)
			require.NotEmpty(t, host)
			require.NotEmpty(t, port)
		}
		again, err := Parse(spec.String())
		require.NoError(t, err)
		require.Equal(t, spec, again)
	})
}
