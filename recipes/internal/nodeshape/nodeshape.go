// Package nodeshape lets a recipe that keeps nodes by package persistent refuse the options that set
// what the recipe itself sets.
package nodeshape

import "fmt"

// Set returns the names of those of opts, a []persistent.Option, that set the mode or the name of
// the node. Package persistent sets it when it is initialized.
var Set func(opts any) []string

// Refuse returns an error if one of opts, a []persistent.Option, sets the mode or the name of the
// node.
func Refuse(opts any) error {
	if set := Set(opts); len(set) > 0 {
		return fmt.Errorf("%s: the mode and the name of the node are given already", set[0])
	}
	return nil
}
