package ensemble

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
)

const (
	tailInErrors = 20
	tailInTests  = 60
)

// Logs writes the last lines of each server's log to w, below a line that names the server. The log
// has everything that a server has printed since New, over all of its starts. After Close there are
// no logs.
func (e *Ensemble) Logs(w io.Writer, lines int) {
	for _, s := range e.servers {
		// The output is for people. A write error has no remedy.
		_, _ = fmt.Fprintf(w, "--- server %d (%s)\n%s\n", s.id, s.addr, s.tail(lines))
	}
}

// tail returns the last lines of the log, or a text that says why it cannot. It is for error
// messages.
func (s *Server) tail(lines int) string {
	text, err := os.ReadFile(s.logFile())
	if err != nil {
		return "no log: " + err.Error()
	}
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// lostPort reports whether the process failed to bind one of its ports. Only the log shows it: for
// some ports the server continues without them.
func (s *Server) lostPort(p *process) bool {
	text, err := os.ReadFile(s.logFile())
	if err != nil || int64(len(text)) < p.from {
		return false
	}
	return bytes.Contains(text[p.from:], []byte("Address already in use"))
}
