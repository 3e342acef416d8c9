package discovery

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docent-zk/docent/framework"
)

// ErrUnreadable means that the data of a node is not an instance.
var ErrUnreadable = errors.New("discovery: not an instance")

// Type says how long the node of an instance stays. Its text is Curator's.
type Type string

// The types of instances. Curator: ServiceType.
const (
	// Dynamic instances have an ephemeral node. It is the type of an Instance without one.
	Dynamic Type = "DYNAMIC"
	// DynamicSequential instances have an ephemeral node with a number after the ID, so that several
	// instances may have the same ID.
	DynamicSequential Type = "DYNAMIC_SEQUENTIAL"
	// Static instances have a persistent node. It stays when the program ends without Close.
	Static Type = "STATIC"
	// Permanent is another name of Static.
	Permanent Type = "PERMANENT"
)

var types = []Type{Dynamic, DynamicSequential, Static, Permanent}

// Instance is one instance of a service. Instances that the package returns must not be changed,
// because all readers share them. A copy may be changed. Curator: ServiceInstance.
type Instance struct {
	Name    string // of the service
	ID      string // of the instance, unique within the service; without one Register makes a random one
	Address string // a host name or an IP address; "": none
	Port    int    // 0: none
	SSLPort int    // 0: none
	// Payload is any JSON value; nil: none. Curator in Java writes the class of an object into its
	// field "@class". Consumers in Java that have a class for the payload fail at an object without
	// that field, also for all other instances of the service. Those with the class Object read a
	// map. Java cannot read arrays.
	Payload json.RawMessage
	// Registered is written to the millisecond. If it is zero, Register takes the present time.
	Registered time.Time
	Type       Type     // "": Dynamic
	URI        *URISpec // nil: none
	// Disabled instances are registered, and no Provider picks them. Curator before 2.12, and 3.0 to
	// 3.2, cannot read a disabled instance: they do not know the field "enabled", which is written
	// only here.
	Disabled bool

	unknown fields // not changed
	node    string // of the node that was read; "": the ID
}

// clone returns a copy that shares nothing that a program can change.
func (i Instance) clone() Instance {
	i.Payload = bytes.Clone(i.Payload)
	if i.URI != nil {
		spec := *i.URI
		spec.Parts = slices.Clone(spec.Parts)
		i.URI = &spec
	}
	return i
}

// HostPort returns the address and the port as net.Dial takes them. Without a port that is port 0,
// also if there is an SSL port: see SSLHostPort.
func (i *Instance) HostPort() string { return net.JoinHostPort(i.Address, strconv.Itoa(i.Port)) }

// SSLHostPort returns the address and the SSL port as net.Dial takes them. Without an SSL port that
// is port 0.
func (i *Instance) SSLHostPort() string { return net.JoinHostPort(i.Address, strconv.Itoa(i.SSLPort)) }

// String returns the name, the ID, the address and the port.
func (i *Instance) String() string { return i.Name + "/" + i.ID + " at " + i.HostPort() }

// key tells an instance from all others, and from itself when it is registered again. Several
// DynamicSequential instances can have the same ID, but not the same node.
type key struct {
	node       string
	registered int64
}

func (i *Instance) key() key { return key{cmp.Or(i.node, i.ID), i.Registered.UnixMilli()} }

// check returns an error if the instance cannot be registered.
func (i *Instance) check() error {
	err := cmp.Or(checkName("name", i.Name), checkName("ID", i.ID),
		checkPort("port", i.Port), checkPort("SSL port", i.SSLPort))
	switch {
	case err != nil:
		return err
	case !slices.Contains(types, i.Type):
		return fmt.Errorf("type %q is not one of %q", i.Type, types)
	case i.Payload != nil && !json.Valid(i.Payload):
		return errors.New("the payload is not valid JSON")
	}
	return nil
}

// checkName returns an error if name cannot be the name of a node.
func checkName(what, name string) error {
	if strings.Contains(name, "/") || framework.CheckPath("/"+name) != nil || name == "" {
		return fmt.Errorf("%w: %s %q: want the name of a node", framework.ErrInvalidPath, what, name)
	}
	return nil
}

func checkPort(what string, port int) error {
	if port < 0 || port > 65535 {
		return fmt.Errorf("%s %d is not between 0 and 65535", what, port)
	}
	return nil
}

// form is the JSON of an instance, with the fields in Curator's order.
type form struct {
	Name       string          `json:"name"`
	ID         string          `json:"id"`
	Address    *string         `json:"address"`
	Port       *int            `json:"port"`
	SSLPort    *int            `json:"sslPort"`
	Payload    json.RawMessage `json:"payload"`
	Registered int64           `json:"registrationTimeUTC"`
	Type       Type            `json:"serviceType"`
	URI        *URISpec        `json:"uriSpec"`
	Enabled    *bool           `json:"enabled,omitempty"`
}

// fields returns where each field of a JSON object is stored.
func (f *form) fields() map[string]any {
	return map[string]any{
		"name": &f.Name, "id": &f.ID, "address": &f.Address, "port": &f.Port, "sslPort": &f.SSLPort,
		"payload": &f.Payload, "registrationTimeUTC": &f.Registered, "serviceType": &f.Type, "uriSpec": &f.URI,
		"enabled": &f.Enabled,
	}
}

// MarshalJSON returns the JSON that Curator writes. Without a Type that is Dynamic, and without
// Registered the time is 0. Fields of other programs that were read are written again.
func (i Instance) MarshalJSON() ([]byte, error) {
	f := form{
		Name: i.Name, ID: i.ID,
		Address: unlessZero(i.Address), Port: unlessZero(i.Port), SSLPort: unlessZero(i.SSLPort),
		Payload: i.Payload, Type: cmp.Or(i.Type, Dynamic), URI: i.URI,
	}
	if !i.Registered.IsZero() {
		f.Registered = i.Registered.UnixMilli()
	}
	if i.Disabled {
		f.Enabled = new(bool)
	}
	return marshal(f, i.unknown)
}

func unlessZero[T comparable](v T) *T {
	if v == *new(T) {
		return nil
	}
	return &v
}

func orZero[T any](v *T) T {
	if v == nil {
		return *new(T)
	}
	return *v
}

// UnmarshalJSON reads what any version of Curator has written. Fields that are missing have the zero
// value. The name and the ID must not be missing.
func (i *Instance) UnmarshalJSON(data []byte) error {
	f := form{Type: Dynamic}
	unknown, err := unmarshal(data, f.fields())
	if err != nil {
		return err
	}
	if f.Name == "" || f.ID == "" {
		return errors.New("the field name or id is missing")
	}
	if string(f.Payload) == "null" {
		f.Payload = nil
	}
	*i = Instance{
		Name: f.Name, ID: f.ID,
		Address: orZero(f.Address), Port: orZero(f.Port), SSLPort: orZero(f.SSLPort),
		Payload: f.Payload, Registered: time.UnixMilli(f.Registered).UTC(), Type: f.Type, URI: f.URI,
		Disabled: f.Enabled != nil && !*f.Enabled, unknown: unknown,
	}
	return nil
}

// decode returns the instance that the data of a node is. The error matches ErrUnreadable.
func decode(path string, data []byte) (*Instance, error) {
	i := &Instance{}
	if err := i.UnmarshalJSON(data); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrUnreadable, path, err)
	}
	i.node = path[strings.LastIndexByte(path, '/')+1:]
	return i, nil
}
