package wire

import (
	"fmt"

	"go.uber.org/zap"
)

// driverLog sends the driver's chatter to the debug level.
type driverLog struct{ log *zap.Logger }

func (l driverLog) Printf(format string, args ...any) {
	if l.log.Core().Enabled(zap.DebugLevel) {
		l.log.Debug("driver: " + fmt.Sprintf(format, args...))
	}
}
