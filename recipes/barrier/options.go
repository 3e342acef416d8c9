package barrier

import (
	"fmt"

	"github.com/docent-zk/docent/internal/option"
	"github.com/docent-zk/docent/recipes/internal/nodedata"
)

// Option configures a Barrier or a Double.
type Option func(*config) error

type config struct{ data nodedata.Data }

// newData returns the data of the nodes.
func newData(opts []Option) ([]byte, error) {
	var c config
	if err := option.Apply(&c, opts); err != nil {
		return nil, err
	}
	return c.data.Bytes()
}

// WithData sets the data of the nodes, for people who look at them: no client reads it. The default
// is the IP address of the host, as in Curator. data is copied and may be empty.
func WithData(data []byte) Option {
	return func(c *config) error {
		c.data.Set(data)
		return nil
	}
}

// maxParties is the limit for the number of parties: the nodes of all parties must be in one
// transaction.
const maxParties = 5000

func checkParties(n int) error {
	if n < 1 || n > maxParties {
		return fmt.Errorf("%d parties: want 1 to %d", n, maxParties)
	}
	return nil
}
