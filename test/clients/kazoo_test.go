package clients

import (
	"testing"

	"github.com/docent-zk/docent/internal/peers"
	"github.com/docent-zk/docent/internal/realzk"
)

func TestKazoo(t *testing.T) {
	realzk.Need(t)
	python := peers.Python(t)
	onEach(t, func(t *testing.T, c *control) transcript {
		return runScript(t, c, python, "-B", "kazoo/script.py")
	})
}
