// Package kind has the texts of the kinds of events and changes, which are the same in all recipes.
package kind

import "fmt"

var texts = [...]string{"", "added", "changed", "removed", "ready", "stale"}

// Text returns the text of a kind, which is the name of its constant in lower case. last is the
// last kind of the recipe.
func Text(k, last int) string {
	if k <= 0 || k > last {
		return fmt.Sprintf("kind %d", k)
	}
	return texts[k]
}
