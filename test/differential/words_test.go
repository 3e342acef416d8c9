package differential

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/docent-zk/docent/internal/rawzk"
)

func TestWords(t *testing.T) {
	compare(t, group{scenarios: []scenario{
		plainWords,
		oddWords,
		wordsAfterConnectAreNone,
		statusOfTheServer,
		connectionsOfTheServer,
		measuresOfTheServer,
		watchesOfTheServer,
		sessionsOfTheServer,
		configurationOfTheServer,
	}})
}

func TestAllowedWords(t *testing.T) {
	for name, properties := range map[string]map[string]string{
		// The harness uses ruok and conf to find that the server runs. It also uses srvr, which is
		// always allowed.
		"srvr and isro are listed":       {"4lw.commands.whitelist": "ruok, srvr, conf, isro"},
		"neither is":                     {"4lw.commands.whitelist": "ruok, conf"},
		"neither is, but read-only mode": {"4lw.commands.whitelist": "ruok, conf", "readonlymode.enabled": "true"},
	} {
		t.Run(name, func(t *testing.T) {
			compare(t, group{config: config{properties: properties},
				scenarios: []scenario{onlyAllowedWordsAreAnswered}})
		})
	}
}

// say sends pieces of bytes to a new connection and returns all received bytes.
func (s *script) say(pieces ...string) string {
	c := s.open("word")
	defer c.conn.Close()
	for _, piece := range pieces {
		c.sendBytes([]byte(piece))
		if len(pieces) > 1 {
			s.say("ruok") // a round trip, because the network may join pieces
		}
	}
	answer, err := c.conn.ReadAll(patience)
	if err != nil {
		return fmt.Sprintf("%s(%v)", answer, err)
	}
	return string(answer)
}

func plainWords(s *script) {
	for _, word := range []string{"ruok", "isro", "ruok\n", "isro and more", "srst", "crst", "gtmk"} {
		s.logf("%q: %q", word, s.say(word))
	}
	s.show(s.shape(s.say("dirs")))
}

func oddWords(s *script) {
	for _, pieces := range [][]string{{"r", "uok"}, {"ru", "ok"}, {"i", "s", "r", "o"}, {"RUOK"}, {"abcd"},
		{"\x7f\x7f\x7f\x7f"}} {
		s.logf("%q: %q", pieces, s.say(pieces...))
	}
}

func wordsAfterConnectAreNone(s *script) {
	a := s.connect("a")
	a.sendBytes([]byte("ruok"))
	a.end()
	s.attach("again", a).close()
}

func onlyAllowedWordsAreAnswered(s *script) {
	for _, word := range []string{"ruok", "isro", "stat", "mntr", "cons", "dump", "wchs", "wchp", "wchc", "envi",
		"srst", "crst", "dirs", "gtmk", "stmk", "hash", "lsnp", "abcd"} {
		s.logf("%q: %q", word, s.say(word))
	}
	status, _, _ := strings.Cut(s.say("srvr"), ":")
	s.logf("srvr: %q", status)
}

var (
	number  = regexp.MustCompile(`\d+(\.\d+)?`)
	address = regexp.MustCompile(`127\.0\.0\.1:\d+`)
	hexID   = regexp.MustCompile(`0x[0-9a-f]+`)
	date    = regexp.MustCompile(`at \w{3} \w{3} \d\d \d\d:\d\d:\d\d \w+ \d{4}`)
)

// shape logs lines without the values that differ between servers: session ids by their labels,
// other numbers as N.
func (s *script) shape(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		line = hexID.ReplaceAllStringFunc(line, func(id string) string { return "<" + s.labelOf(id) + ">" })
		line = date.ReplaceAllString(line, "at <date>")
		line = address.ReplaceAllString(line, "<addr>")
		lines = append(lines, number.ReplaceAllStringFunc(line, func(string) string { return "N" }))
	}
	return lines
}

func (s *script) labelOf(id string) string {
	for i, known := range s.sessions {
		if fmt.Sprintf("0x%x", known.id) == id {
			return fmt.Sprintf("session %c", 'a'+i)
		}
	}
	return "hex"
}

func (s *script) show(lines []string) {
	for _, line := range lines {
		s.logf("%q", line)
	}
}

// exact logs the lines that start with one of the prefixes as they are.
func (s *script) exact(text string, prefixes ...string) {
	for line := range strings.Lines(text) {
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(line, p) }) {
			s.logf("exactly %q", line)
		}
	}
}

func statusOfTheServer(s *script) {
	a := s.connect("a")
	a.do(rawzk.Create(s.path("x"), nil, rawzk.Open(), rawzk.Ephemeral))
	for _, word := range []string{"srvr", "stat"} {
		text := s.say(word)
		version, rest, _ := strings.Cut(text, ":")
		_, rest, _ = strings.Cut(rest, "\n")
		s.show(append([]string{version}, s.shape(rest)...))
		s.exact(text, "Connections:", "Outstanding:", "Mode:", "Node count:")
	}
	a.close()
}

func connectionsOfTheServer(s *script) {
	a, b := s.connect("a"), s.connect("b")
	a.do(rawzk.Create(s.path("x"), nil, rawzk.Open(), rawzk.Ephemeral))
	b.do(rawzk.GetData(s.path("x"), false))
	lines := s.shape(s.say("cons"))
	slices.Sort(lines)
	s.show(lines)
	a.close()
	b.close()
}

// measures are those with values that follow from the requests.
var measures = []string{
	"zk_server_state", "zk_ephemerals_count", "zk_num_alive_connections", "zk_outstanding_requests", "zk_znode_count",
	"zk_global_sessions", "zk_local_sessions", "zk_watch_count", "zk_approximate_data_size",
}

// others are listed with any value.
var others = []string{
	"zk_version", "zk_avg_latency", "zk_min_latency", "zk_max_latency", "zk_packets_received", "zk_packets_sent",
	"zk_uptime", "zk_max_file_descriptor_count", "zk_open_file_descriptor_count",
}

func measuresOfTheServer(s *script) {
	a := s.connect("a")
	a.do(rawzk.Create(s.path("x"), []byte("12345"), rawzk.Open(), rawzk.Ephemeral))
	a.do(rawzk.GetData(s.path("x"), true))
	a.do(rawzk.GetChildren(s.path("x"), true))
	a.do(rawzk.AddWatch(s.path("x"), 0))
	text := s.say("mntr")
	for _, key := range measures {
		s.exact(text, key+"\t")
	}
	for _, key := range others {
		s.logf("%s: %t", key, strings.Contains(text, "\n"+key+"\t") || strings.HasPrefix(text, key+"\t"))
	}
	a.close()
}

func watchesOfTheServer(s *script) {
	a, b := s.connect("a"), s.connect("b")
	x, y := s.path("x"), s.path("y")
	a.do(rawzk.Create(x, nil, rawzk.Open(), rawzk.Ephemeral))
	a.do(rawzk.GetData(x, true))
	a.do(rawzk.Exists(y, true))
	b.do(rawzk.Exists(y, true))
	b.do(rawzk.GetChildren(s.path(""), true))
	s.show(strings.SplitAfter(s.say("wchs"), "\n"))
	for _, word := range []string{"wchc", "wchp"} {
		lines := s.shape(s.say(word))
		slices.Sort(lines) // sessions and paths have no order
		s.show(lines)
	}
	a.close()
	b.close()
	s.show(strings.SplitAfter(s.say("wchs"), "\n"))
}

func sessionsOfTheServer(s *script) {
	a, b := s.connect("a"), s.connect("b")
	a.do(rawzk.Create(s.path("x"), nil, rawzk.Open(), rawzk.Ephemeral))
	a.do(rawzk.Create(s.path("y"), nil, rawzk.Open(), rawzk.Ephemeral))
	lines := s.shape(s.say("dump"))
	slices.Sort(lines)
	s.show(slices.Compact(lines)) // sessions that end at the same tick share a line
	a.close()
	b.close()
}

// configurationOfTheServer compares the keys, and the values that the harness has set.
func configurationOfTheServer(s *script) {
	text := s.say("conf")
	for line := range strings.Lines(text) {
		key, _, _ := strings.Cut(line, "=")
		s.logf("%s", strings.TrimSpace(key))
	}
	s.exact(text, "tickTime=", "maxClientCnxns=", "minSessionTimeout=", "maxSessionTimeout=", "serverId=")
}
