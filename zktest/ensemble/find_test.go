package ensemble

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// install creates empty files. They are executable because java must be.
func install(t *testing.T, names ...string) (root string) {
	root = t.TempDir()
	for _, name := range names {
		name = filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
		require.NoError(t, os.WriteFile(name, nil, 0o700))
	}
	return root
}

func env(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

func TestFindPrefersZooKeeperHome(t *testing.T) {
	home := install(t,
		"lib/zookeeper-3.9.3.jar", "lib/zookeeper-jute-3.9.3.jar", "lib/logback-classic-1.2.13.jar", "lib/notes.txt")
	debian := install(t, "zookeeper.jar", "zookeeper-3.8.0.jar")
	java := install(t, "bin/java")
	d, err := finder{env(map[string]string{"ZOOKEEPER_HOME": home, "JAVA_HOME": java}), debian}.find()
	require.NoError(t, err)
	require.Equal(t, "3.9.3", d.Version)
	require.Len(t, d.ClassPath, 3)
	require.Equal(t, filepath.Join(java, "bin", "java"), d.Java)
	require.Equal(t, "ZooKeeper 3.9.3 on "+d.Java, d.String())
}

func TestFindTakesDebiansPackage(t *testing.T) {
	debian := install(t, "zookeeper.jar", "zookeeper-3.8.0.jar", "zookeeper-jute-3.8.0.jar", "slf4j-simple.jar")
	path := install(t, "java")
	d, err := finder{env(map[string]string{"JAVA_HOME": t.TempDir(), "PATH": path}), debian}.find()
	require.NoError(t, err)
	require.Equal(t, Distribution{
		Java:      filepath.Join(path, "java"),
		ClassPath: []string{filepath.Join(debian, "zookeeper.jar"), filepath.Join(debian, "slf4j-simple.jar")},
		Version:   "3.8.0",
	}, d)
}

func TestFindSaysWhatIsMissing(t *testing.T) {
	empty := t.TempDir()
	java := install(t, "bin/java")
	debian := install(t, "zookeeper.jar")
	tests := map[string]struct {
		vars   map[string]string
		debian string
		want   []string
	}{
		"nothing": {nil, empty,
			[]string{"ZOOKEEPER_HOME is not set", filepath.Join(empty, "zookeeper.jar"), "apt-get install zookeeper"}},
		"wrong home": {map[string]string{"ZOOKEEPER_HOME": empty, "JAVA_HOME": java}, debian,
			[]string{"ZOOKEEPER_HOME=" + empty}},
		"no java": {map[string]string{"JAVA_HOME": "/nowhere", "PATH": empty}, debian,
			[]string{"no java", `"/nowhere"`, "apt-get install default-jre-headless"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := finder{env(test.vars), test.debian}.find()
			require.ErrorIs(t, err, ErrNotInstalled)
			for _, want := range test.want {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

func TestFindFromTheEnvironment(t *testing.T) {
	t.Setenv("ZOOKEEPER_HOME", "/nowhere")
	_, err := New(timeout(t), 1)
	require.ErrorIs(t, err, ErrNotInstalled)
	require.ErrorContains(t, err, "/nowhere")
}

func TestBadArgumentsAreNamed(t *testing.T) {
	tests := map[string]struct {
		servers int
		opt     Option
		want    string
	}{
		"none":         {0, WithTick(time.Second), "0 servers"},
		"even":         {2, WithTick(time.Second), "2 servers"},
		"negative":     {-3, WithTick(time.Second), "-3 servers"},
		"tick":         {1, WithTick(-time.Second), "WithTick(-1s)"},
		"zero tick":    {1, WithTick(0), "WithTick(0s)"},
		"session":      {1, WithSessionTimeouts(-time.Second, time.Second), "WithSessionTimeouts(-1s, 1s)"},
		"inverted":     {1, WithSessionTimeouts(2*time.Second, time.Second), "WithSessionTimeouts(2s, 1s)"},
		"few ticks":    {1, WithTick(time.Minute), "session timeouts 2m0s to 1m0s"},
		"no name":      {1, WithConfig("", "1"), `WithConfig: "", "1"`},
		"a line":       {1, WithConfig("tickTime=", "1"), `WithConfig: "tickTime=", "1"`},
		"two lines":    {1, WithConfig("a", "1\nb=2"), `WithConfig: "a", "1\nb=2"`},
		"no such":      {3, WithServerConfig(4, "a", "b"), "WithServerConfig: server 4: there are 3"},
		"its config":   {3, WithServerConfig(1, "", "a"), `WithServerConfig: "", "a"`},
		"property":     {1, WithProperty("a=b", "c"), `WithProperty: "a=b"`},
		"no key":       {1, WithProperty("", "c"), `WithProperty: ""`},
		"link":         {3, WithQuorumLink(nil), "WithQuorumLink"},
		"elections":    {3, WithElectionLink(nil), "WithElectionLink"},
		"nil":          {1, nil, "nil option"},
		"distribution": {1, WithDistribution(Distribution{}), "WithDistribution"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := New(timeout(t), test.servers, test.opt)
			require.ErrorContains(t, err, "ensemble: ")
			require.ErrorContains(t, err, test.want)
		})
	}
}

func TestGivenDistributionIsRun(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "java")
	_, err := New(timeout(t), 1, WithDistribution(Distribution{Java: missing, ClassPath: []string{"a.jar"}}))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, missing)
}
