// Package peers lets tests run programs that use other people's clients of ZooKeeper: Curator, in Java, and kazoo, in Python. Where they
// are not installed, the tests fail and say what to install.
package peers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const jarFolder = "/usr/share/java"

// curatorJars are the jar files of Debian's packages. The jar of ZooKeeper's client names those that it needs itself.
var curatorJars = []string{
	"curator-client.jar", "curator-framework.jar", "curator-recipes.jar", "guava.jar", "slf4j-api.jar", "zookeeper.jar", "zookeeper-jute.jar",
}

// Java compiles programs that use Curator, the Java files that match any of the patterns, and returns the command that runs one of them
// when the name of its main class is appended.
func Java(t testing.TB, patterns ...string) []string {
	t.Helper()
	jars, classes := classPath(t), t.TempDir()
	compile(t, patterns, jars, classes)
	return append(VM(t), "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", join(append(jars, classes)))
}

// VM is the command that runs Java, without a class path.
func VM(t testing.TB) []string {
	t.Helper()
	return []string{requireProgram(t, "java", "default-jdk-headless"), "-XX:TieredStopAtLevel=1"}
}

// ZooKeeperJar is the jar of the server and of its command line client.
func ZooKeeperJar(t testing.TB) string {
	t.Helper()
	return requireJar(t, "zookeeper.jar", "libzookeeper-java")
}

// Python finds a Python that has kazoo. Debian's packages belong to Debian's Python, which need not be the first in PATH.
func Python(t testing.TB) string {
	t.Helper()
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if err := exec.Command(python, "-c", "import kazoo.client").Run(); err == nil {
			return python
		}
	}
	require.FailNow(t, "no python3 has kazoo: "+install("python3-kazoo"))
	return ""
}

func compile(t testing.TB, patterns, jars []string, classes string) {
	t.Helper()
	javac := requireProgram(t, "javac", "default-jdk-headless")
	args := []string{"-Xlint:all,-path,-processing", "-Werror", "-d", classes, "-cp", join(jars)}
	for _, pattern := range patterns {
		sources, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, sources, pattern)
		args = append(args, sources...)
	}
	output, err := exec.Command(javac, args...).CombinedOutput()
	require.NoError(t, err, "javac: %s", output)
}

func classPath(t testing.TB) (found []string) {
	t.Helper()
	for _, jar := range curatorJars {
		found = append(found, requireJar(t, jar, "libcurator-recipes-java"))
	}
	if backend := filepath.Join(jarFolder, "slf4j-simple.jar"); exists(backend) {
		found = append(found, backend) // without one the client logs nothing
	}
	return found
}

func join(path []string) string { return strings.Join(path, string(os.PathListSeparator)) }

func requireJar(t testing.TB, name, debianPackage string) string {
	t.Helper()
	jar := filepath.Join(jarFolder, name)
	require.True(t, exists(jar), "there is no %s: %s", jar, install(debianPackage))
	return jar
}

func requireProgram(t testing.TB, name, debianPackage string) string {
	t.Helper()
	program, err := exec.LookPath(name)
	require.NoError(t, err, "%s is not installed: %s", name, install(debianPackage))
	return program
}

func install(debianPackage string) string {
	return fmt.Sprintf("apt-get install %s", debianPackage)
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
