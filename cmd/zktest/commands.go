package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/docent-zk/docent/zktest"
)

// control carries out commands.
type control struct {
	srv      *zktest.Server
	nodes    map[string]string // the initial nodes
	connect  string            // the connect string
	stopped  bool
	readOnly bool
}

// command is a command that a line may contain.
type command struct {
	name     string
	argument string // its name in the help text; empty without an argument
	help     string
	run      func(c *control, argument string) (answer string, err error)
}

func (c command) usage() string { return strings.TrimSpace(c.name + " " + c.argument) }

var commands []command

func init() {
	commands = []command{
		{"stop", "", "close ports and connections; nodes and sessions are kept", (*control).stop},
		{"start", "", "go on after stop, on the same ports", (*control).start},
		{"restart", "", "stop and start", (*control).restart},
		{"wipe", "", "restart with the nodes of -load and nothing else", (*control).wipe},
		{
			"readonly", "on|off", "serve only clients that accept a read-only server, or all again",
			(*control).setReadOnly,
		},
		{"expire", "SESSION", "end a session, as if its client had been silent for too long", (*control).expire},
		{"drop", "SESSION", "end the connection of a session, which lives on", (*control).drop},
		{"sessions", "", "answer the ids of all sessions", (*control).sessions},
		{"status", "", "answer what state the server is in", (*control).status},
		{"help", "", "answer the names of the commands", (*control).help},
	}
}

// obey carries out commands, one a line, until in or ctx ends.
func (c *control) obey(ctx context.Context, in io.Reader, out io.Writer) error {
	lines, ended := make(chan string), make(chan error, 1)
	// Reading standard input cannot be interrupted: when ctx ends, the goroutine ends with the
	// process.
	go func() { ended <- readLines(ctx, in, lines) }()
	for {
		select {
		case line := <-lines:
			if _, err := fmt.Fprintln(out, c.answer(line)); err != nil {
				return fmt.Errorf("zktest: answer a command: %w", err)
			}
		case err := <-ended:
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

// readLines sends each line that is not empty to lines, until in or ctx ends.
func readLines(ctx context.Context, in io.Reader, lines chan<- string) error {
	scanner := bufio.NewScanner(in)
	for scanner.Scan() {
		line := strings.TrimSpace(scanner.Text())
		if line == "" {
			continue
		}
		select {
		case lines <- line:
		case <-ctx.Done():
			return nil
		}
	}
	if err := scanner.Err(); err != nil {
		return fmt.Errorf("zktest: read commands: %w", err)
	}
	return nil
}

// answer carries out one command and returns its answer, which is one line.
func (c *control) answer(line string) string {
	answer, err := c.carryOut(line)
	if err != nil {
		return "error: " + strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	return strings.TrimSpace("ok " + answer)
}

func (c *control) carryOut(line string) (string, error) {
	name, argument, _ := strings.Cut(line, " ")
	argument = strings.TrimSpace(argument)
	for _, known := range commands {
		if known.name != name {
			continue
		}
		if (argument == "") != (known.argument == "") {
			return "", fmt.Errorf("%q: want %s", line, known.usage())
		}
		return known.run(c, argument)
	}
	return "", fmt.Errorf("%q: no such command; help names them all", line)
}

func (c *control) stop(string) (string, error) {
	c.srv.Stop()
	c.stopped = true
	return "", nil
}

func (c *control) start(string) (string, error) {
	if err := c.srv.Start(); err != nil {
		return "", err
	}
	c.stopped = false
	return "", nil
}

func (c *control) restart(string) (string, error) {
	_, _ = c.stop("") // never an error
	return c.start("")
}

// wipe starts the server again only if it was running.
func (c *control) wipe(string) (string, error) {
	stopped := c.stopped
	_, _ = c.stop("") // never an error
	if err := errors.Join(c.srv.Wipe(), c.srv.Load(c.nodes)); err != nil {
		return "", err
	}
	if stopped {
		return "", nil
	}
	return c.start("")
}

func (c *control) setReadOnly(argument string) (string, error) {
	on, known := map[string]bool{"on": true, "off": false}[argument]
	if !known {
		return "", fmt.Errorf("readonly %q: want on or off", argument)
	}
	c.srv.SetReadOnly(on)
	c.readOnly = on
	return "", nil
}

func (c *control) expire(argument string) (string, error) {
	return c.withSession(argument, zktest.Session.Expire)
}

func (c *control) drop(argument string) (string, error) {
	return c.withSession(argument, zktest.Session.Drop)
}

func (c *control) withSession(argument string, do func(zktest.Session) error) (string, error) {
	id, err := strconv.ParseInt(argument, 0, 64)
	if err != nil {
		return "", fmt.Errorf("session %q: want an id such as 0x10000a2b3c40000", argument)
	}
	session, found := c.srv.Session(id)
	if !found {
		return "", fmt.Errorf("session %s: there is none, or it has ended", argument)
	}
	return "", do(session)
}

func (c *control) sessions(string) (string, error) {
	var ids []string
	for _, session := range c.srv.Sessions() {
		ids = append(ids, fmt.Sprintf("0x%x", session.ID))
	}
	return strings.Join(ids, " "), nil
}

func (c *control) status(string) (string, error) {
	state, mode := "running", "read-write"
	if c.stopped {
		state = "stopped"
	}
	if c.readOnly {
		mode = "read-only"
	}
	return fmt.Sprintf("state=%s mode=%s sessions=%d connect=%s", state, mode, len(c.srv.Sessions()), c.connect), nil
}

func (c *control) help(string) (string, error) {
	var names []string
	for _, known := range commands {
		names = append(names, known.usage())
	}
	return strings.Join(names, ", "), nil
}
