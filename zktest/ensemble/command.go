package ensemble

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

const (
	pollEvery  = 30 * time.Millisecond
	askTimeout = 2 * time.Second // for a server on the same machine, which answers soon or never
)

// Command sends a four-letter word, such as "mntr" or "cons", and returns the server's unchanged
// answer. A server that is running but not serving answers most words with a sentence that says so,
// without an error. A paused server answers when it is resumed. ctx bounds the wait.
func (s *Server) Command(ctx context.Context, word string) (string, error) {
	if len(word) != 4 {
		return "", fmt.Errorf("ensemble: command %q: not four letters", word)
	}
	answer, err := s.exchange(ctx, word)
	if err != nil {
		return "", s.annotate(fmt.Errorf("command %q: %w", word, err))
	}
	return answer, nil
}

func (s *Server) exchange(ctx context.Context, word string) (string, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.addr)
	if err != nil {
		return "", err
	}
	defer conn.Close() // the answer is complete or the error is known
	// A deadline in the past makes the calls below return as soon as ctx ends.
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	answer, err := talk(conn, word)
	if err != nil && ctx.Err() != nil {
		return "", ctx.Err()
	}
	return answer, err
}

func talk(conn net.Conn, word string) (string, error) {
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}

// ask is exchange for a poll. It has a timeout, so that one silent server does not use up the time
// of all.
func (s *Server) ask(ctx context.Context, word string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return s.exchange(ctx, word)
}

// status is what a serving server reports about itself.
type status struct {
	mode string
	zxid uint64
}

// status returns an error unless the server takes requests.
func (s *Server) status(ctx context.Context) (status, error) {
	answer, err := s.ask(ctx, "srvr")
	if err != nil {
		return status{}, err
	}
	st, err := parseStatus(answer)
	if err != nil {
		return status{}, err
	}
	return st, s.recognize(ctx)
}

func parseStatus(answer string) (status, error) {
	var st status
	for line := range strings.Lines(answer) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "Mode":
			st.mode = value
		case "Zxid":
			st.zxid, _ = strconv.ParseUint(value, 0, 64) // 0 ranks it behind servers with a zxid
		}
	}
	switch st.mode {
	case "leader", "follower", "observer", "standalone":
		return st, nil
	case "":
		return status{}, errors.New("not serving")
	}
	return status{}, fmt.Errorf("not serving: mode %s", st.mode)
}

// recognize returns an error if another process answers on the server's port, for example the
// ZooKeeper of another test. Our server notices that only when it tries to listen.
func (s *Server) recognize(ctx context.Context) error {
	answer, err := s.ask(ctx, "conf")
	if err == nil && !strings.Contains(answer, "dataDir="+s.dataDir()) {
		return errors.New("another server answers on its port")
	}
	return err
}

// poll calls probe until it reports done or ctx ends. The last error of a probe that is not done
// goes into the error. It polls because the events happen in other processes.
func poll(ctx context.Context, probe func(context.Context) (done bool, err error)) error {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	var last error
	for {
		done, err := probe(ctx)
		if done {
			return err
		}
		if !over(ctx) { // otherwise the probe was cut short and knows nothing
			last = err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return timedOut(ctx, last)
		}
	}
}

// over reports whether ctx has ended, without its lag: a call that obeys the deadline by its own
// clock may return earlier.
func over(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

func timedOut(ctx context.Context, last error) error {
	if last == nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w: %w", ctx.Err(), last)
}
