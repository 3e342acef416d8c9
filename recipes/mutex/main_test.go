package mutex_test

import (
	"os"
	"testing"

	"github.com/docent-zk/docent/internal/testzk"
)

func TestMain(m *testing.M) {
	if os.Getenv(serverVariable) != "" {
		serve()
		return
	}
	testzk.Main(m)
}
