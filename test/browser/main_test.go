// Package browser tests the page of docent serve, and the site that make site makes, with a real browser,
// Chromium.
//
// DOCENT_SCREENSHOTS=DIR keeps the screenshots. DOCENT_LOCKS=N sets the number of locks of the test
// with many. DOCENT_IDLE=10s measures for that long what a page of an unchanged tree costs.
package browser

import (
	"testing"

	"github.com/docent-zk/docent/internal/testzk"
)

func TestMain(m *testing.M) { testzk.Main(m) }
