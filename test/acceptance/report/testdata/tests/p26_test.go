package acceptance_test

import "testing"

// A wrong address is an error.
func TestP26_Addresses(t *testing.T) { onlyInProcess(t, "real servers have no wrong address") }
