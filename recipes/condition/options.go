package condition

import "github.com/docent-zk/docent/recipes/internal/nodedata"

// Option configures a Condition.
type Option func(*config) error

type config struct{ data nodedata.Data }

// WithData sets the data of the nodes of waiters. It should identify the client. The default is this
// host's IP address, as for lock nodes. WithData and WithIdentity exclude each other.
func WithData(data []byte) Option {
	return func(c *config) error {
		c.data.Set(data)
		return nil
	}
}

// WithIdentity sets the data of the nodes of waiters to host, process and process id, as a
// recipes.Identity. WithIdentity and WithData exclude each other.
func WithIdentity() Option {
	return func(c *config) error {
		c.data.Identify()
		return nil
	}
}
