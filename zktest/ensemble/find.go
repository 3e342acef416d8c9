package ensemble

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// ErrNotInstalled means that ZooKeeper or Java is missing. The errors that match it say what was
// searched for, where, and how to install it.
var ErrNotInstalled = errors.New("ensemble: not installed")

// Distribution is an installed ZooKeeper server and the Java to run it with.
type Distribution struct {
	// Java is the java executable.
	Java string
	// ClassPath lists the jar files of the server and of a logging backend.
	ClassPath []string
	// Version is the server's version from the name of its jar, such as "3.9.3". It is empty if the
	// name has none.
	Version string
}

func (d Distribution) validate() error {
	if d.Java == "" || len(d.ClassPath) == 0 {
		return fmt.Errorf("WithDistribution(%+v): want Java and a class path", d)
	}
	return nil
}

// Find searches for ZooKeeper in the folder ZOOKEEPER_HOME and then in the folder of Debian's
// package, and for Java in JAVA_HOME and then in PATH. If ZOOKEEPER_HOME is set but has no server,
// Find fails instead of searching elsewhere: the tests would run against another version than the
// one asked for. The error matches [ErrNotInstalled].
func Find() (Distribution, error) {
	return finder{env: os.Getenv, debian: "/usr/share/java"}.find()
}

// finder is Find with its environment as fields.
type finder struct {
	env    func(string) string
	debian string // folder of Debian's jar files
}

func (f finder) find() (Distribution, error) {
	jars, err := f.jars()
	if err != nil {
		return Distribution{}, err
	}
	java, err := f.java()
	if err != nil {
		return Distribution{}, err
	}
	return Distribution{Java: java, ClassPath: jars.classPath, Version: jars.version}, nil
}

// jars is the part of a Distribution that is not Java.
type jars struct {
	classPath []string
	version   string
}

func (f finder) jars() (jars, error) {
	if home := f.env("ZOOKEEPER_HOME"); home != "" {
		return inHome(home)
	}
	return f.inDebian()
}

func inHome(home string) (jars, error) {
	all := append(glob(home, "lib", "*.jar"), glob(home, "*.jar")...)
	for _, jar := range all {
		if version := versionOf(jar); version != "" {
			return jars{all, version}, nil
		}
	}
	return jars{}, fmt.Errorf("%w: no zookeeper-<version>.jar in ZOOKEEPER_HOME=%s or its lib folder: "+
		"it must name an unpacked binary distribution (apache-zookeeper-<version>-bin)", ErrNotInstalled, home)
}

// inDebian adds only the server and the logging backend. The jar's manifest names the rest of the
// class path, but no logging backend, and without one the server logs nothing.
func (f finder) inDebian() (jars, error) {
	server := filepath.Join(f.debian, "zookeeper.jar")
	if !isFile(server) {
		return jars{}, fmt.Errorf("%w: no ZooKeeper server: ZOOKEEPER_HOME is not set and there is no %s: "+
			"apt-get install zookeeper, or unpack a binary distribution and set ZOOKEEPER_HOME",
			ErrNotInstalled, server)
	}
	found := jars{classPath: []string{server}}
	if backend := filepath.Join(f.debian, "slf4j-simple.jar"); isFile(backend) {
		found.classPath = append(found.classPath, backend)
	}
	for _, jar := range glob(f.debian, "zookeeper-*.jar") {
		if version := versionOf(jar); version != "" {
			found.version = version
		}
	}
	return found, nil
}

func (f finder) java() (string, error) {
	if java := filepath.Join(f.env("JAVA_HOME"), "bin", "java"); f.env("JAVA_HOME") != "" && isFile(java) {
		return java, nil
	}
	for _, folder := range filepath.SplitList(f.env("PATH")) {
		if java, err := exec.LookPath(filepath.Join(folder, "java")); err == nil && filepath.IsAbs(java) {
			return java, nil
		}
	}
	return "", fmt.Errorf("%w: no java in JAVA_HOME=%q or PATH: apt-get install default-jre-headless",
		ErrNotInstalled, f.env("JAVA_HOME"))
}

var serverJar = regexp.MustCompile(`^zookeeper-(\d[^/]*)\.jar$`)

// versionOf returns the version in the name of the server's jar, and nothing for other jars.
func versionOf(jar string) string {
	if m := serverJar.FindStringSubmatch(filepath.Base(jar)); m != nil {
		return m[1]
	}
	return ""
}

// glob is filepath.Glob in a folder with a name of any characters.
func glob(folder string, pattern ...string) []string {
	sub := filepath.Join(append([]string{folder}, pattern[:len(pattern)-1]...)...)
	entries, _ := os.ReadDir(sub) // an unreadable folder counts as empty, which the caller reports
	var found []string
	for _, entry := range entries {
		if ok, _ := filepath.Match(pattern[len(pattern)-1], entry.Name()); ok {
			found = append(found, filepath.Join(sub, entry.Name()))
		}
	}
	return found
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && !info.IsDir()
}

// String returns a description for logs.
func (d Distribution) String() string {
	version := d.Version
	if version == "" {
		version = "of unknown version"
	}
	return strings.Join([]string{"ZooKeeper", version, "on", d.Java}, " ")
}
