// Package discovery registers the instances of services, and finds them. It corresponds to
// Curator's x-discovery, with the same nodes and the same JSON: programs in Java find the instances
// of programs in Go, and the other way round.
//
//	registry, err := discovery.New(client, "/services")
//
// # A program that serves
//
//	self, err := registry.Register(discovery.Instance{Name: "orders", Address: "10.0.0.3", Port: 8080})
//	if err != nil {
//		return err
//	}
//	defer self.Close()
//	err = self.WaitReady(ctx) // registered
//
// A [Registration] keeps the instance registered through lost connections and sessions. Its node is
// the path of the registry, the name of the service, and the ID. [Registration.SetInstance] changes
// the payload, or disables the instance before the program stops serving.
//
// # A program that uses a service
//
//	orders, err := registry.View("orders")
//	if err != nil {
//		return err
//	}
//	defer orders.Close()
//	provider, err := discovery.NewProvider(orders, discovery.WithStrategy(discovery.Random()))
//	if err != nil {
//		return err
//	}
//	instance, err := provider.Pick(ctx)
//	if err != nil {
//		return err
//	}
//	if err := call(instance.HostPort()); err != nil {
//		provider.Fail(instance) // and pick another one
//	}
//
// A [View] has all instances of a service in memory, and follows their changes. A [Provider] picks
// one for each request. It leaves out disabled instances, and for a while those that fail. A
// program that asks only once uses [Registry.Instances].
//
// # Lost connections
//
// Without a connection a View keeps the instances that it has, and a Provider picks from them.
// [View.StaleSince], the event [Stale] and the log say so. An instance may then be listed although
// it has stopped. It may also be listed for a session timeout after its process has crashed. What a
// program gets is a hint where to send a request. It must expect that the request fails.
//
// # Nodes of other programs
//
// A node that is not an instance is left out and logged. [View.Unreadable] lists such nodes. Fields
// of an instance that this package does not know are kept when the instance is read and written.
package discovery
