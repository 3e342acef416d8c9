package interop

import (
	"os"
	"testing"

	"github.com/docent-zk/docent/internal/leaks"
	"github.com/docent-zk/docent/internal/testzk"
)

// peerVariable is set for the processes of this program that are peers.
const peerVariable = "DOCENT_INTEROP_PEER"

func TestMain(m *testing.M) {
	if os.Getenv(peerVariable) != "" {
		runDocent(os.Args[1:])
		return
	}
	testzk.Widen()
	leaks.Main(m)
}
