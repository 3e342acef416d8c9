//go:build !unix

package ensemble

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
)

func childAttributes() *syscall.SysProcAttr { return nil }

// terminate kills the process, because there is no portable way to ask it to end.
func terminate(p *os.Process) error { return p.Kill() }

func pause(*os.Process) error  { return errNoPause }
func resume(*os.Process) error { return errNoPause }

var errNoPause = fmt.Errorf("pausing a process on %s: %w", runtime.GOOS, errors.ErrUnsupported)
