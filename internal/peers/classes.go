package peers

import (
	"archive/zip"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const recipesPackage = "org.apache.curator.framework.recipes."

// CuratorRecipes returns the names of the public classes of Curator's recipes, such as locks.Lease,
// without nested classes.
func CuratorRecipes(t testing.TB) []string {
	t.Helper()
	path, err := jars()
	require.NoError(t, err)
	javap, err := program("javap", jdk)
	require.NoError(t, err)
	output, err := exec.Command(javap, append([]string{"-cp", join(path)}, recipeClasses(t)...)...).Output()
	require.NoError(t, err)
	var public []string
	const kind = `(?m)^public (?:.* )?(?:class|interface) `
	declaration := regexp.MustCompile(kind + regexp.QuoteMeta(recipesPackage) + `([\w.]+)`)
	for _, match := range declaration.FindAllStringSubmatch(string(output), -1) {
		public = append(public, match[1])
	}
	return public
}

// recipeClasses returns the full names of all classes of Curator's recipes, without nested classes.
func recipeClasses(t testing.TB) (classes []string) {
	t.Helper()
	file, err := jar("curator-recipes.jar", "libcurator-recipes-java")
	require.NoError(t, err)
	archive, err := zip.OpenReader(file)
	require.NoError(t, err)
	defer archive.Close()
	for _, f := range archive.File {
		name, isClass := strings.CutSuffix(strings.ReplaceAll(f.Name, "/", "."), ".class")
		if isClass && strings.HasPrefix(name, recipesPackage) && !strings.Contains(name, "$") {
			classes = append(classes, name)
		}
	}
	return classes
}
