// Package mutexlock lets a recipe that is built on a mutex reach what package mutex does not export.
package mutexlock

import "github.com/docent-zk/docent/recipes/internal/queue"

// Of returns the lock of m, a *mutex.Mutex; nil for nil and for the zero value. Package mutex sets
// it when it is initialized.
var Of func(m any) *queue.Lock
