package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/docent-zk/docent/internal/overlay"
)

// verify requires that the test fails with the patch, for the expected reason, and, unless it is not
// wanted, that it passes without. What is compiled with the patch is in the build cache of dir.
func (d defect) verify(ctx context.Context, dir overlay.Dir, alsoMended bool) error {
	files, err := patched(filepath.Join(folder, d.name+".patch"))
	if err != nil {
		return err
	}
	changed, err := dir.Write(files)
	if err != nil {
		return err
	}
	output, err := d.test(ctx, dir, []string{dir.Cache()}, "-overlay", changed, "-count=1")
	if err := d.mustFail(output, err); err != nil {
		return err
	}
	if !alsoMended {
		return nil
	}
	if output, err := d.test(ctx, dir, nil); err != nil {
		return fmt.Errorf("%s fails without the patch, too: %w\n%s", d.tests, err, excerpt(output))
	}
	return nil
}

// mustFail returns an error unless a test has failed for the expected reason.
func (d defect) mustFail(output string, err error) error {
	var exit *exec.ExitError
	switch {
	case err == nil && strings.Contains(output, "no tests to run"):
		return fmt.Errorf("there is no test %s", d.tests)
	case err == nil:
		return fmt.Errorf("%s passes though the mend is taken back", d.tests)
	case !errors.As(err, &exit):
		return err
	case strings.Contains(output, "[build failed]"), strings.Contains(output, "[setup failed]"):
		return fmt.Errorf("the code does not compile with the patch:\n%s", excerpt(output))
	case !strings.Contains(output, d.says):
		return fmt.Errorf("the test fails, but does not say %q:\n%s", d.says, excerpt(output))
	}
	return nil
}

// test runs the tests of the defect.
func (d defect) test(
	ctx context.Context, dir overlay.Dir, env []string, more ...string,
) (output string, err error) {
	args := append([]string{"test", "-vet=off", "-timeout=180s"}, more...)
	args = append(args, "-run", d.tests, "./"+d.folder)
	cmd := dir.Command(ctx, append(env, d.environment()...), "go", args...)
	cmd.Dir = d.module
	b, err := cmd.CombinedOutput()
	return string(b), err
}

// excerpt returns the lines of an output that say what has failed, or its end.
func excerpt(output string) string {
	var says []string
	for line := range strings.Lines(output) {
		if telling.MatchString(line) {
			says = append(says, strings.TrimRight(line, "\n"))
		}
	}
	if says == nil {
		says = strings.Split(output, "\n")
		says = says[max(0, len(says)-20):]
	}
	return strings.Join(says[:min(len(says), 20)], "\n")
}

var telling = regexp.MustCompile(`--- FAIL|Error:|expected|actual|Messages:|panic:|fatal error:` +
	`|\.go:\d+:\d+:|_test\.go:\d+: .`)
