package differential

import (
	"flag"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
)

// scenariosRun and groupsRun are for the summary, which shows if the suite ran nothing.
var scenariosRun, groupsRun atomic.Int64

func TestMain(m *testing.M) {
	flag.Parse()
	// Scenarios that wait must not delay others. busySlots limits the groups that do not wait.
	if err := flag.Set("test.parallel", "64"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	fmt.Printf("differential: %d scenarios in %d groups ran on %s\n", scenariosRun.Load(), groupsRun.Load(), pairName())
	os.Exit(code)
}
