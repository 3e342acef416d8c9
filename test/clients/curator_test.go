package clients

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/realzk"
)

const jarFolder = "/usr/share/java"

// curatorJars are the jar files of Debian's packages. The jar of ZooKeeper's client names those that it needs itself.
var curatorJars = []string{
	"curator-client.jar", "curator-framework.jar", "curator-recipes.jar", "guava.jar", "slf4j-api.jar", "zookeeper.jar", "zookeeper-jute.jar",
}

func TestCurator(t *testing.T) {
	realzk.Need(t)
	java := requireProgram(t, "java", "default-jdk-headless")
	classes := t.TempDir()
	compile(t, classes)
	path := strings.Join(append(classPath(t), classes), string(os.PathListSeparator))
	onEach(t, func(t *testing.T, c *control) transcript {
		return runScript(t, c, java, "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", path, "Script")
	})
}

func compile(t *testing.T, classes string) {
	t.Helper()
	javac := requireProgram(t, "javac", "default-jdk-headless")
	sources, err := filepath.Glob("java/*.java")
	require.NoError(t, err)
	require.NotEmpty(t, sources)
	args := append([]string{"-Xlint:all,-path,-processing", "-d", classes, "-cp", strings.Join(classPath(t), string(os.PathListSeparator))}, sources...)
	output, err := exec.Command(javac, args...).CombinedOutput()
	require.NoError(t, err, "javac: %s", output)
}

func classPath(t *testing.T) (found []string) {
	t.Helper()
	for _, jar := range curatorJars {
		found = append(found, requireJar(t, jar, "libcurator-recipes-java"))
	}
	if backend := filepath.Join(jarFolder, "slf4j-simple.jar"); exists(backend) {
		found = append(found, backend) // without one the client logs nothing
	}
	return found
}

func requireJar(t *testing.T, name, debianPackage string) string {
	t.Helper()
	jar := filepath.Join(jarFolder, name)
	require.True(t, exists(jar), "there is no %s: %s", jar, install(debianPackage))
	return jar
}

func requireProgram(t *testing.T, name, debianPackage string) string {
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
