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

// ErrNotInstalled means that ZooKeeper or Java is missing. The errors that match it say what was looked for, where, and
// how to install it.
var ErrNotInstalled = errors.New("ensemble: not installed")

// Distribution is an installed ZooKeeper server and the Java to run it with.
type Distribution struct {
	// Java is the java executable.
	Java string
	// ClassPath holds the jar files of the server and of a logging backend.
	ClassPath []string
	// Version is the server's version as its jar's name tells it, like "3.9.3"; empty if the name does not tell.
	Version string
}

func (d Distribution) validate() error {
	if d.Java == "" || len(d.ClassPath) == 0 {
		return fmt.Errorf("distribution %+v: want Java and a class path", d)
	}
	return nil
}

// Find looks for ZooKeeper in the folder that ZOOKEEPER_HOME names and then where Debian's package puts it, and for Java
// in JAVA_HOME and then in PATH. A ZOOKEEPER_HOME that holds no server is an error and not a reason to look elsewhere:
// the tests would run against another version than the one asked for. The error matches [ErrNotInstalled].
func Find() (Distribution, error) {
	return finder{env: os.Getenv, debian: "/usr/share/java"}.find()
}

// finder is Find with its surroundings as values.
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

// jars is the half of a Distribution that is not Java.
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

// inDebian leaves most of the class path to the jar's manifest. Only the logging backend is missing there: without one
// the server logs nothing.
func (f finder) inDebian() (jars, error) {
	server := filepath.Join(f.debian, "zookeeper.jar")
	if !isFile(server) {
		return jars{}, fmt.Errorf("%w: no ZooKeeper server: ZOOKEEPER_HOME is not set and there is no %s: "+
			"apt-get install zookeeper, or unpack a binary distribution and set ZOOKEEPER_HOME", ErrNotInstalled, server)
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

// versionOf is the version in the name of the server's jar, and empty for all other jars.
func versionOf(jar string) string {
	if m := serverJar.FindStringSubmatch(filepath.Base(jar)); m != nil {
		return m[1]
	}
	return ""
}

// glob is filepath.Glob in a folder whose own name may hold anything.
func glob(folder string, pattern ...string) []string {
	sub := filepath.Join(append([]string{folder}, pattern[:len(pattern)-1]...)...)
	entries, _ := os.ReadDir(sub) // an unreadable folder holds nothing, and the caller says so
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

// String tells a reader of a log which server the tests ran against.
func (d Distribution) String() string {
	version := d.Version
	if version == "" {
		version = "of unknown version"
	}
	return strings.Join([]string{"ZooKeeper", version, "on", d.Java}, " ")
}
