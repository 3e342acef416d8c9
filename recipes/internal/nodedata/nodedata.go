// Package nodedata makes the data of lock nodes.
package nodedata

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/docent-zk/docent/recipes"
)

// Data is the data of lock nodes, as the options of a recipe set it. The zero value is the
// default.
type Data struct {
	data     []byte // nil: the default
	identity bool
}

// Set implements the option WithData.
func (d *Data) Set(data []byte) { d.data = append([]byte{}, data...) }

// Identify implements the option WithIdentity.
func (d *Data) Identify() { d.identity = true }

// Bytes returns the data.
func (d *Data) Bytes() ([]byte, error) {
	switch {
	case d.identity && d.data != nil:
		return nil, errors.New("WithData and WithIdentity exclude each other: both set the data of the lock nodes")
	case d.identity:
		return OwnIdentity()
	case d.data != nil:
		return d.data, nil
	}
	return defaultData(), nil
}

// defaultData returns what Curator stores in a node without data: the IP address of the host. No
// client parses it.
var defaultData = sync.OnceValue(func() []byte {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return []byte("127.0.0.1")
	}
	for _, a := range addrs {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil && ip.IP.IsGlobalUnicast() {
			return []byte(ip.IP.String())
		}
	}
	return []byte("127.0.0.1")
})

// OwnIdentity returns the data of a node that names the host, the program and the pid.
func OwnIdentity() ([]byte, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("identity: %w", err)
	}
	return json.Marshal(recipes.Identity{Host: host, Process: filepath.Base(os.Args[0]), PID: os.Getpid()})
}
