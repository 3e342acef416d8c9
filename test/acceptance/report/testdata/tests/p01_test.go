package acceptance_test

import (
	"os"
	"strconv"
	"testing"
)

func TestMain(m *testing.M) { os.Exit(m.Run()) }

func onlyInProcess(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("ZOOKEEPER") != "" {
		t.Skip("in-process only: " + why)
	}
}

// A hold ends within 3 s,
// whatever a|b says.
//
// The rest is for those who read the code.
func TestP01_HoldEnds(t *testing.T) {}

// Two of three cases can be had everywhere.
func TestP01_Cases(t *testing.T) {
	for i := range 3 {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Run("inner", func(t *testing.T) {
				if i == 2 {
					onlyInProcess(t, "it takes a third")
				}
			})
		})
	}
}
