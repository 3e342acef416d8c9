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

// Logs writes the last lines of each server's log to w, under a line that names the server. All that a server printed
// since New is there, over all of its starts. After Close there is nothing left to write.
func (e *Ensemble) Logs(w io.Writer, lines int) {
	for _, s := range e.servers {
		_, _ = fmt.Fprintf(w, "--- server %d (%s)\n%s\n", s.id, s.addr, s.tail(lines)) // for eyes: a broken w has no remedy
	}
}

// tail is best effort: it serves error messages.
func (s *Server) tail(lines int) string {
	text, err := os.ReadFile(s.logFile())
	if err != nil {
		return "no log: " + err.Error()
	}
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// lostPort says whether the process failed to bind one of its ports. Only its log tells: for some ports the server goes on
// without.
func (s *Server) lostPort(p *process) bool {
	text, err := os.ReadFile(s.logFile())
	if err != nil || int64(len(text)) < p.from {
		return false
	}
	return bytes.Contains(text[p.from:], []byte("Address already in use"))
}
