package testzk

import "github.com/go-zookeeper/zk"

// Conn is a connection of the driver. If there are several servers, each read sees everything that was
// answered to any client before: the one that this connection is to may lag behind.
type Conn struct {
	*zk.Conn
	several bool
}

// catchUp waits until the server can answer a read.
func (c *Conn) catchUp() error {
	if !c.several {
		return nil
	}
	return Sync(c.Conn)
}

// Exists is zk.Conn.Exists.
func (c *Conn) Exists(path string) (bool, *zk.Stat, error) {
	if err := c.catchUp(); err != nil {
		return false, nil, err
	}
	return c.Conn.Exists(path)
}

// ExistsW is zk.Conn.ExistsW.
func (c *Conn) ExistsW(path string) (bool, *zk.Stat, <-chan zk.Event, error) {
	if err := c.catchUp(); err != nil {
		return false, nil, nil, err
	}
	return c.Conn.ExistsW(path)
}

// Get is zk.Conn.Get.
func (c *Conn) Get(path string) ([]byte, *zk.Stat, error) {
	if err := c.catchUp(); err != nil {
		return nil, nil, err
	}
	return c.Conn.Get(path)
}

// GetW is zk.Conn.GetW.
func (c *Conn) GetW(path string) ([]byte, *zk.Stat, <-chan zk.Event, error) {
	if err := c.catchUp(); err != nil {
		return nil, nil, nil, err
	}
	return c.Conn.GetW(path)
}

// Children is zk.Conn.Children.
func (c *Conn) Children(path string) ([]string, *zk.Stat, error) {
	if err := c.catchUp(); err != nil {
		return nil, nil, err
	}
	return c.Conn.Children(path)
}

// ChildrenW is zk.Conn.ChildrenW.
func (c *Conn) ChildrenW(path string) ([]string, *zk.Stat, <-chan zk.Event, error) {
	if err := c.catchUp(); err != nil {
		return nil, nil, nil, err
	}
	return c.Conn.ChildrenW(path)
}

// GetACL is zk.Conn.GetACL.
func (c *Conn) GetACL(path string) ([]zk.ACL, *zk.Stat, error) {
	if err := c.catchUp(); err != nil {
		return nil, nil, err
	}
	return c.Conn.GetACL(path)
}
