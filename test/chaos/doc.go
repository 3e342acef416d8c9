// Package chaos has no code but its tests: processes that contend for locks on real servers while servers are killed and processes are
// paused, with the history of all holds checked afterwards.
package chaos
