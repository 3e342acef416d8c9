package recipes

import "time"

// Participant is somebody in a line: a lock node and what it tells.
type Participant struct {
	Node    string    // the node's path
	Data    []byte    // by default the participant's IP address
	Session int64     // that the node belongs to
	Token   int64     // the node's czxid: its fencing token, if it holds
	Since   time.Time // when the node was created, by the server's clock
}
