import java.io.IOException;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.x.discovery.ServiceDiscovery;
import org.apache.curator.x.discovery.ServiceDiscoveryBuilder;
import org.apache.curator.x.discovery.ServiceInstance;
import org.apache.curator.x.discovery.ServiceProvider;
import org.apache.curator.x.discovery.strategies.RandomStrategy;

/** The Java fragments of docs/porting-from-curator.md about services. */
abstract class Discovery {
    private CuratorFramework client;
    private ServiceDiscovery<String> discovery;

    abstract void call(String address, Integer port) throws IOException;

    // fragment service
    ServiceDiscovery<String> offer() throws Exception {
        ServiceDiscovery<String> discovery =
            ServiceDiscoveryBuilder.builder(String.class)
                .client(client)
                .basePath("/services")
                .thisInstance(
                    ServiceInstance.<String>builder()
                        .name("orders")
                        .address("10.0.0.3")
                        .port(8080)
                        .build())
                .build();
        discovery.start();
        return discovery;
    }
    // end

    // fragment service-provider
    void use() throws Exception {
        try (ServiceProvider<String> orders =
                discovery.serviceProviderBuilder()
                    .serviceName("orders")
                    .providerStrategy(new RandomStrategy<>())
                    .build()) {
            orders.start();
            ServiceInstance<String> instance = orders.getInstance();
            try {
                call(instance.getAddress(), instance.getPort());
            } catch (IOException e) {
                orders.noteError(instance);
            }
        }
    }
    // end
}
