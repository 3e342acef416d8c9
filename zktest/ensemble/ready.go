package ensemble

import (
	"context"
	"errors"
	"fmt"
)

// answer is what one server reported about itself. Servers that were stopped, killed or paused are
// not asked.
type answer struct {
	server *Server
	status
	err error // why it does not serve
}

func (a answer) leads() bool { return a.mode == "leader" || a.mode == "standalone" }

// Leader waits until a server is the leader or is standalone, and returns it. Servers paused
// through this package are not asked. After the old leader was resumed, two servers may claim to
// lead for a moment; Leader then returns the one with the later transaction.
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

// WaitReady waits until every server serves clients, one of them as the leader. It ignores servers
// that were stopped, killed or paused through this package. It fails at once if a server has died
// by itself, or if no server is left. With fewer servers than a quorum it waits until ctx ends.
func (e *Ensemble) WaitReady(ctx context.Context) error {
	if err := poll(ctx, e.ready); err != nil {
		return fmt.Errorf("ensemble: wait until it serves: %w", err)
	}
	return nil
}

// ready asks all servers once. It is done if they serve, or if they never will.
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

// reasons joins the errors of the answers.
func reasons(answers []answer) error {
	var errs []error
	for _, a := range answers {
		if a.err != nil {
			errs = append(errs, fmt.Errorf("server %d (%s): %w", a.server.id, a.server.addr, a.err))
		}
	}
	return errors.Join(errs...)
}

// survey asks each server that should be running, once.
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
