package striped

import (
	"fmt"

	"github.com/docent-zk/docent/recipes/internal/nodedata"
)

// Option configures a Striped.
type Option func(*config) error

type config struct {
	data     nodedata.Data
	previous int // 0: none
}

// WithData sets the data of the lock nodes. It should identify the client. The default is this
// host's IP address. WithData and WithIdentity exclude each other.
func WithData(data []byte) Option {
	return func(c *config) error {
		c.data.Set(data)
		return nil
	}
}

// WithIdentity sets the data of the lock nodes to host, process and process id, as a
// recipes.Identity. WithIdentity and WithData exclude each other.
func WithIdentity() Option {
	return func(c *config) error {
		c.data.Identify()
		return nil
	}
}

// WithPrevious changes the number of stripes from n while programs run: each key has a stripe among n
// and one among the new number, and both are held. So the lock of a key excludes programs with n,
// and programs with the new number. See "Changing the number" in the documentation of the package.
func WithPrevious(n int) Option {
	return func(c *config) error {
		if err := checkNumber(n); err != nil {
			return fmt.Errorf("WithPrevious: %w", err)
		}
		c.previous = n
		return nil
	}
}

// maxStripes bounds the number of stripes, so that all of them fit into one transaction.
const maxStripes = 1000

func checkNumber(n int) error {
	if n < 1 || n > maxStripes {
		return fmt.Errorf("%d stripes: want 1 to %d", n, maxStripes)
	}
	return nil
}
