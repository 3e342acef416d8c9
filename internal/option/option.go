// Package option applies the options of a constructor.
//
// An option of the library is a value named With..., a function that sets one field of a
// configuration. It checks its arguments itself. Its error names the option and the value:
//
//	func WithSpan(d time.Duration) Option {
//		return func(c *config) error {
//			if d <= 0 {
//				return fmt.Errorf("WithSpan: %v is not positive", d)
//			}
//			c.span = d
//			return nil
//		}
//	}
package option

import "fmt"

// Apply applies opts to c in order. It returns an error for an option that is nil, and the first
// error of an option. Options after that are not applied.
func Apply[C any, O ~func(*C) error](c *C, opts []O) error {
	for i, opt := range opts {
		if opt == nil {
			return fmt.Errorf("option %d is nil", i)
		}
		if err := opt(c); err != nil {
			return err
		}
	}
	return nil
}
