package ensemble

import (
	"context"
	"errors"
	"fmt"
)

// answer is what one server said about itself. Servers that were stopped, killed or paused are not asked.
type answer struct {
	server *Server
	status
	err error // it does not serve, and why
}

func (a answer) leads() bool { return a.mode == "leader" || a.mode == "standalone" }

// Leader waits until a server leads, or stands alone, and returns it. Servers paused through this package are not asked.
// If two say that they lead, as may be for a moment after the old leader was resumed, it is the one that has seen the
// later transaction.
func (e *Ensemble) Leader(ctx context.Context) (*Server, error) {
	var leader *Server
	err := poll(ctx, func(ctx context.Context) (bool, error) {
		answers := e.survey(ctx)
		leader = leaderOf(answers)
		return leader != nil, reasons(answers)
	})
	if leader == nil {
		return nil, fmt.Errorf("ensemble: wait for a leader: %w", err)
	}
	return leader, nil
}

func leaderOf(answers []answer) *Server {
	var latest answer
	for _, a := range answers {
		if a.leads() && (latest.server == nil || a.zxid > latest.zxid) {
			latest = a
		}
	}
	return latest.server
}

// WaitReady waits until every server serves clients, one of them as the leader. Servers that were stopped, killed or
// paused through this package do not count. It fails at once if a server has died by itself, or if there is none to wait
// for; with fewer than a quorum it waits until ctx ends.
func (e *Ensemble) WaitReady(ctx context.Context) error {
	if err := poll(ctx, e.ready); err != nil {
		return fmt.Errorf("ensemble: wait until it serves: %w", err)
	}
	return nil
}

// ready is one look at all servers: done if they serve, or never will.
func (e *Ensemble) ready(ctx context.Context) (bool, error) {
	answers := e.survey(ctx)
	for _, a := range answers {
		if errors.Is(a.err, errDied) {
			return true, reasons(answers)
		}
	}
	if len(answers) == 0 {
		return true, errors.New("no server is running")
	}
	err := reasons(answers)
	if err == nil && leaderOf(answers) == nil {
		err = errors.New("followers only")
	}
	return err == nil, err
}

// reasons joins the errors.
func reasons(answers []answer) error {
	var errs []error
	for _, a := range answers {
		if a.err != nil {
			errs = append(errs, fmt.Errorf("server %d (%s): %w", a.server.id, a.server.addr, a.err))
		}
	}
	return errors.Join(errs...)
}

// survey asks each server that should be up, once.
func (e *Ensemble) survey(ctx context.Context) []answer {
	var answers []answer
	for _, s := range e.servers {
		p, paused := s.current()
		if p == nil || paused {
			continue
		}
		a := answer{server: s}
		if a.err = s.checkAlive(p); a.err == nil {
			a.status, a.err = s.status(ctx)
		}
		answers = append(answers, a)
	}
	return answers
}
