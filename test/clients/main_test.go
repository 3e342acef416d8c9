package clients

import (
	"testing"

	"github.com/docent-zk/docent/internal/testzk"
)

func TestMain(m *testing.M) { testzk.Exit(m.Run()) }
