// Package peers lets tests run programs that use other ZooKeeper clients: Curator, in Java, and
// kazoo, in Python. Where one is not installed, the tests fail and say what to install.
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

// curatorJars are the jar files of Debian's packages. The jar of ZooKeeper's client names the jars
// that it needs itself.
var curatorJars = []string{
	"curator-client.jar", "curator-framework.jar", "curator-recipes.jar", "curator-x-discovery.jar", "guava.jar",
	"jackson-annotations.jar", "jackson-core.jar", "jackson-databind.jar", "slf4j-api.jar", "zookeeper.jar",
	"zookeeper-jute.jar",
}

// Java compiles the Java files that match any of the patterns, which may use Curator. It returns a
// command that runs one of the programs if the name of its main class is appended.
func Java(t testing.TB, patterns ...string) []string {
	t.Helper()
	classPath, err := Compile(t.TempDir(), patterns...)
	require.NoError(t, err)
	return append(VM(t), "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", classPath)
}

// VM returns the command that runs Java, without a class path.
func VM(t testing.TB) []string {
	t.Helper()
	java, err := program("java", jdk)
	require.NoError(t, err)
	return []string{java, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"}
}

// ZooKeeperJar returns the jar of the server and its command line client.
func ZooKeeperJar(t testing.TB) string {
	t.Helper()
	jar, err := jar("zookeeper.jar", "libzookeeper-java")
	require.NoError(t, err)
	return jar
}

// Python is FindPython for tests.
func Python(t testing.TB) string {
	t.Helper()
	python, err := FindPython()
	require.NoError(t, err)
	return python
}

// FindPython returns a Python that has kazoo. Debian's packages belong to Debian's Python, which
// need not be the first in PATH.
func FindPython() (string, error) { return findPython("kazoo.client", "python3-kazoo") }

// Pytest returns a Python that has kazoo and pytest.
func Pytest(t testing.TB) string {
	t.Helper()
	python, err := findPython("kazoo.client, pytest", "python3-kazoo python3-pytest")
	require.NoError(t, err)
	return python
}

func findPython(modules, debianPackages string) (string, error) {
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if err := exec.Command(python, "-c", "import "+modules).Run(); err == nil {
			return python, nil
		}
	}
	return "", fmt.Errorf("no python3 has %s: %s", modules, install(debianPackages))
}

const jdk = "default-jdk-headless"

// Compile compiles the Java files that match any of the patterns into a folder. It returns the
// class path to run them with.
func Compile(classes string, patterns ...string) (classPath string, err error) {
	path, err := jars()
	if err != nil {
		return "", err
	}
	return compile(classes, path, patterns)
}

// junitJars are the jars of JUnit 5 and its console launcher.
var junitJars = []string{
	"apiguardian-api.jar", "junit-jupiter-api.jar", "junit-jupiter-engine.jar", "junit-platform-commons.jar",
	"junit-platform-console.jar", "junit-platform-reporting.jar", "opentest4j.jar",
}

// JUnit compiles the Java files that match any of the patterns: JUnit 5 tests, which may use
// Curator. It returns the command that runs them all.
func JUnit(t testing.TB, patterns ...string) []string {
	t.Helper()
	path, err := jars()
	require.NoError(t, err)
	for _, name := range junitJars {
		file, err := jar(name, "junit5")
		require.NoError(t, err)
		path = append(path, file)
	}
	classes := t.TempDir()
	classPath, err := compile(classes, path, patterns)
	require.NoError(t, err)
	return append(VM(t), "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", classPath,
		"org.junit.platform.console.ConsoleLauncher", "--scan-classpath", classes, "--fail-if-no-tests",
		"--disable-banner", "--disable-ansi-colors")
}

func compile(classes string, path, patterns []string) (classPath string, err error) {
	javac, err := program("javac", jdk)
	if err != nil {
		return "", err
	}
	args := []string{"-Xlint:all,-path,-processing", "-Werror", "-d", classes, "-cp", join(path)}
	for _, pattern := range patterns {
		sources, err := filepath.Glob(pattern)
		if err != nil {
			return "", err
		}
		if len(sources) == 0 {
			return "", fmt.Errorf("no file is %s", pattern)
		}
		args = append(args, sources...)
	}
	if output, err := exec.Command(javac, args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("javac: %w: %s", err, output)
	}
	return join(append(path, classes)), nil
}

// CuratorVersion returns the version of Curator in Compile's class path, empty if it is unknown.
func CuratorVersion() string {
	named, _ := filepath.Glob(filepath.Join(jarFolder, "curator-recipes-*.jar"))
	if len(named) == 0 {
		return ""
	}
	return strings.TrimSuffix(strings.TrimPrefix(filepath.Base(named[0]), "curator-recipes-"), ".jar")
}

func jars() (found []string, err error) {
	for _, name := range curatorJars {
		file, err := jar(name, "libcurator-recipes-java libcurator-discovery-java")
		if err != nil {
			return nil, err
		}
		found = append(found, file)
	}
	if backend := filepath.Join(jarFolder, "slf4j-simple.jar"); exists(backend) {
		found = append(found, backend) // without a backend the client logs nothing
	}
	return found, nil
}

func join(path []string) string { return strings.Join(path, string(os.PathListSeparator)) }

func jar(name, debianPackage string) (string, error) {
	file := filepath.Join(jarFolder, name)
	if !exists(file) {
		return "", fmt.Errorf("there is no %s: %s", file, install(debianPackage))
	}
	return file, nil
}

func program(name, debianPackage string) (string, error) {
	file, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s is not installed: %s: %w", name, install(debianPackage), err)
	}
	return file, nil
}

func install(debianPackage string) string {
	return fmt.Sprintf("apt-get install %s", debianPackage)
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
