package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/docent-zk/docent/test/bench/report"
	"github.com/docent-zk/docent/zktest/ensemble"
)

// describe returns the facts about the machine and the versions.
func describe(c *peerGroup) []report.Fact {
	facts := []report.Fact{
		{Name: "date", Value: time.Now().UTC().Format(time.DateOnly)},
		{Name: "commit", Value: commit()},
		{Name: "processor", Value: fmt.Sprintf("%s, %d cores", field("/proc/cpuinfo", "model name"), runtime.NumCPU())},
		{Name: "memory", Value: field("/proc/meminfo", "MemTotal")},
		{Name: "system", Value: fmt.Sprintf("%s/%s, kernel %s", runtime.GOOS, runtime.GOARCH, output("uname", "-r"))},
		{Name: "ZooKeeper", Value: zookeeper()},
		{Name: "etcd", Value: firstLine(output("etcd", "--version"))},
	}
	for _, version := range c.versions() {
		facts = append(facts, report.Fact{Name: "peer", Value: version})
	}
	for _, absent := range c.absent {
		facts = append(facts, report.Fact{Name: "left out", Value: absent})
	}
	return facts
}

// commit returns the commit of the work tree, and whether there are changes.
func commit() string {
	id := known(output("git", "rev-parse", "--short=12", "HEAD"))
	if output("git", "status", "--porcelain", "--", ":/", ":!/docs/benchmarks*") != "" {
		id += " with changes"
	}
	return id
}

// field returns a value in a file of the system.
func field(file, name string) string {
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		if key, value, _ := strings.Cut(line, ":"); strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return known("")
}

func zookeeper() string {
	d, err := ensemble.Find()
	if err != nil {
		return err.Error()
	}
	words, _ := exec.Command(d.Java, "-version").CombinedOutput()
	java := ""
	if parts := bytes.Split(words, []byte(`"`)); len(parts) > 2 {
		java = string(parts[1])
	}
	return fmt.Sprintf("%s on Java %s", known(d.Version), known(java))
}

func output(command string, args ...string) string {
	out, _ := exec.Command(command, args...).Output()
	return strings.TrimSpace(string(out))
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return known(strings.TrimPrefix(line, "etcd Version: "))
}

func known(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}
