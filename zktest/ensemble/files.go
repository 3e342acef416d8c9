package ensemble

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/docent-zk/docent/internal/port"
)

const mainClass = "org.apache.zookeeper.server.quorum.QuorumPeerMain"

// ports are the ports of one server. Only an ensemble uses the last two.
type ports struct{ client, quorum, election *port.Port }

// pickPorts takes loopback ports for a number of servers.
func pickPorts(servers int) ([]ports, error) {
	all := make([]ports, servers)
	for i := range all {
		for _, p := range []**port.Port{&all[i].client, &all[i].quorum, &all[i].election} {
			var err error
			if *p, err = port.New(); err != nil {
				release(all)
				return nil, err
			}
		}
	}
	return all, nil
}

// release releases the ports that were taken.
func release(all []ports) {
	for _, server := range all {
		for _, p := range []*port.Port{server.client, server.quorum, server.election} {
			if p != nil {
				p.Close()
			}
		}
	}
}

// zooCfg returns the configuration of server number id, counted from 1.
func zooCfg(c config, id int, data string, all []ports) (string, error) {
	lines := []string{
		"dataDir=" + filepath.ToSlash(data),
		"clientPortAddress=127.0.0.1",
		"clientPort=" + strconv.Itoa(all[id-1].client.Number()),
		fmt.Sprintf("tickTime=%d", c.tick.Milliseconds()),
		"initLimit=20",
		"syncLimit=10",
		fmt.Sprintf("minSessionTimeout=%d", c.minSession.Milliseconds()),
		fmt.Sprintf("maxSessionTimeout=%d", c.maxSession.Milliseconds()),
		"maxClientCnxns=0",
		"admin.enableServer=false",
		"4lw.commands.whitelist=*",
		"quorumListenOnAllIPs=false",
	}
	if len(all) > 1 {
		for i, p := range all {
			line, err := serverLine(c, id, i+1, p)
			if err != nil {
				return "", err
			}
			lines = append(lines, line)
		}
	}
	lines = append(append(lines, c.lines...), c.own[id]...)
	return strings.Join(lines, "\n") + "\n", nil
}

// serverLine returns the line of the configuration of server from that has the ports of server to.
func serverLine(c config, from, to int, p ports) (string, error) {
	quorum := c.quorumLink.address(from, to, p.quorum.Addr())
	election := c.electionLink.address(from, to, p.election.Addr())
	host, _, err := net.SplitHostPort(quorum)
	if err != nil {
		return "", fmt.Errorf("quorum link: %w", err)
	}
	electionHost, electionPort, err := net.SplitHostPort(election)
	if err != nil {
		return "", fmt.Errorf("election link: %w", err)
	}
	if electionHost != host {
		return "", fmt.Errorf("links of server %d to %d: one host is wanted, not %s and %s", from, to, quorum, election)
	}
	return fmt.Sprintf("server.%d=%s:%s", to, quorum, electionPort), nil
}

// arguments returns the arguments of java. The server must write nothing outside of dir, because a
// killed server cannot clean up.
func arguments(c config, d Distribution, dir string) []string {
	classPath := append([]string{dir}, d.ClassPath...) // dir first: it configures the logging
	args := []string{
		"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData",
		"-Djava.io.tmpdir=" + dir,
		"-Dzookeeper.forceSync=no",
		"-Dzookeeper.extendedTypesEnabled=true",
		"-Dzookeeper.jmx.log4j.disable=true",
		"-Dorg.slf4j.simpleLogger.logFile=System.out",
		"-Dorg.slf4j.simpleLogger.showDateTime=true",
		"-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
		"-Dorg.slf4j.simpleLogger.showShortLogName=true",
		"-Dorg.slf4j.simpleLogger.log." + chatty + "=warn",
	}
	for _, p := range c.properties {
		args = append(args, "-D"+p.key+"="+p.value)
	}
	return append(args, "-cp", strings.Join(classPath, string(os.PathListSeparator)),
		mainClass, filepath.Join(dir, "zoo.cfg"))
}

// chatty logs each four-letter word, and this package sends many.
const chatty = "org.apache.zookeeper.server.NIOServerCnxn"

// The two logging backends that binary distributions have come with. Debian's is configured by
// system properties.
const (
	logback = `<configuration>
  <appender name="STDOUT" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d{HH:mm:ss.SSS} [%thread] %-5level %logger{0} - %msg%n</pattern></encoder>
  </appender>
  <logger name="` + chatty + `" level="WARN"/>
  <root level="INFO"><appender-ref ref="STDOUT"/></root>
</configuration>
`
	log4j = `log4j.rootLogger=INFO, STDOUT
log4j.appender.STDOUT=org.apache.log4j.ConsoleAppender
log4j.appender.STDOUT.layout=org.apache.log4j.PatternLayout
log4j.appender.STDOUT.layout.ConversionPattern=%d{HH:mm:ss.SSS} [%t] %-5p %c{1} - %m%n
log4j.logger.` + chatty + `=WARN
`
)

// writeFiles creates a server's folder. The data has a folder of its own, so that it can be wiped
// without the rest.
func writeFiles(dir string, files map[string]string) error {
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}
