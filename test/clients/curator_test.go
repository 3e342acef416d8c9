package clients

import (
	"testing"

	"github.com/docent-zk/docent/internal/peers"
	"github.com/docent-zk/docent/internal/realzk"
)

func TestCurator(t *testing.T) {
	realzk.Need(t)
	java := peers.Java(t, "java/*.java")
	onEach(t, func(t *testing.T, c *control) transcript {
		return runScript(t, c, append(java, "Script")...)
	})
}
