package clients

import (
	"testing"

	"github.com/docent-zk/docent/internal/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }
