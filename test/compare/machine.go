package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/docent-zk/docent/internal/peers"
	"github.com/docent-zk/docent/test/compare/page"
	"github.com/docent-zk/docent/test/compare/worker"
	"github.com/docent-zk/docent/zktest/ensemble"
)

// describe returns the facts about the machine and the versions.
func describe() (facts []page.Fact) {
	add := func(name, value string) {
		if value == "" {
			value = "unknown"
		}
		facts = append(facts, page.Fact{Name: name, Value: value})
	}
	add("date", time.Now().UTC().Format(time.DateOnly))
	add("commit", output("git", "rev-parse", "--short=12", "HEAD"))
	add("processor", fmt.Sprintf("%s, %d cores", field("/proc/cpuinfo", "model name"), runtime.NumCPU()))
	add("memory", field("/proc/meminfo", "MemTotal"))
	add("system", fmt.Sprintf("%s/%s, kernel %s", runtime.GOOS, runtime.GOARCH, output("uname", "-r")))
	add("lease", worker.Lease.String())
	if d, err := ensemble.Find(); err == nil {
		add("ZooKeeper", d.Version)
	}
	for _, s := range []struct{ name, command, argument string }{
		{"etcd", "etcd", "--version"}, {"Redis", "redis-server", "--version"},
		{"PostgreSQL", "/usr/lib/postgresql/*/bin/postgres", "--version"}, {"MariaDB", "mariadbd", "--version"},
	} {
		line, _, _ := strings.Cut(output("sh", "-c", `PATH="$PATH:/usr/sbin"; exec `+s.command+" "+s.argument), "\n")
		add(s.name, line)
	}
	add("Curator", peers.CuratorVersion())
	add("Go", runtime.Version())
	info, _ := debug.ReadBuildInfo()
	for _, m := range info.Deps {
		if slices.Contains(libraries, m.Path) {
			add(m.Path, m.Version)
		}
	}
	return facts
}

// libraries are the modules under comparison, and the clients that they use.
var libraries = []string{"github.com/go-zookeeper/zk", "go.etcd.io/etcd/client/v3", "github.com/redis/go-redis/v9",
	"github.com/go-redsync/redsync/v4", "github.com/bsm/redislock", "github.com/jackc/pgx/v5",
	"github.com/go-sql-driver/mysql"}

// field returns a value in a file of the system.
func field(file, name string) string {
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		if key, value, _ := strings.Cut(line, ":"); strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

func output(command string, args ...string) string {
	out, _ := exec.Command(command, args...).Output()
	return strings.TrimSpace(string(out))
}
