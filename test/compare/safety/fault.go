package safety

// Fault is something that happens while a program holds a lock.
type Fault string

const (
	Pause       Fault = "pause"        // of the holder, longer than the lease, before it looks at its lock
	PauseLate   Fault = "pause-late"   // the same, after it has looked, right before it writes
	Overrun     Fault = "overrun"      // the work takes longer than the lease; nothing fails
	Kill        Fault = "kill"         // of the holder
	KillAcquire Fault = "kill-acquire" // of a program before it gets the first answer of its acquire
	Partition   Fault = "partition"    // the holder is cut off from the service
	WaiterDies  Fault = "waiter-dies"  // a waiter between the holder and another waiter is killed
	ClockAhead  Fault = "clock-ahead"  // the clock of the other program is an hour ahead
	Restart     Fault = "restart"      // of the server
	Wipe        Fault = "wipe"         // restart of the server without its disk
	Failover    Fault = "failover"     // to a replica, or to another member of the majority
	ServerClock Fault = "server-clock" // is set forward by an hour
	Delete      Fault = "delete"       // an operator deletes the record of the holder
)

// Faults are all faults, in the order of the tables.
var Faults = []Fault{Pause, PauseLate, Overrun, Kill, KillAcquire, Partition, WaiterDies, ClockAhead, Restart, Wipe,
	Failover, ServerClock, Delete}

// ofServer reports whether a fault is one of the service, for all programs at once.
func (f Fault) ofServer() bool {
	switch f {
	case Restart, Wipe, Failover, ServerClock, Delete:
		return true
	}
	return false
}

// frees reports whether the lock has to become free although the holder does not release it.
func (f Fault) frees() bool {
	switch f {
	case Pause, PauseLate, Kill, KillAcquire, Partition:
		return true
	}
	return false
}
