//go:build !unix

package child

import "errors"

// CanPause reports whether processes can be paused on this system.
const CanPause = false

// Pause is not supported.
func (p *Process) Pause() error { return errors.ErrUnsupported }

// Resume is not supported.
func (p *Process) Resume() error { return errors.ErrUnsupported }
