import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.x.discovery.ServiceDiscovery;
import org.apache.curator.x.discovery.ServiceDiscoveryBuilder;
import org.apache.curator.x.discovery.ServiceInstance;
import org.apache.curator.x.discovery.ServiceProvider;
import org.apache.curator.x.discovery.ServiceType;
import org.apache.curator.x.discovery.UriSpec;
import org.apache.curator.x.discovery.details.JsonInstanceSerializer;

/** The instances of the service "orders" below one path. */
final class Services {
    private static final String NAME = "orders";

    private final ServiceDiscovery<Object> discovery;
    private final ServiceProvider<Object> provider;

    /** In the compatible mode the field "enabled" is not written. */
    Services(CuratorFramework client, String base, boolean compatible) throws Exception {
        discovery = ServiceDiscoveryBuilder.builder(Object.class).client(client).basePath(base)
                .serializer(new JsonInstanceSerializer<>(Object.class, compatible)).build();
        discovery.start();
        provider = discovery.serviceProviderBuilder().serviceName(NAME).build();
        provider.start();
    }

    String act(String[] words) throws Exception {
        switch (words[2]) {
            case "register":
                discovery.registerService(instance(words));
                return "registered";
            case "update":
                discovery.updateService(instance(words));
                return "updated";
            case "unregister":
                discovery.unregisterService(instance(words));
                return "unregistered";
            case "names":
                return String.join(" ", discovery.queryForNames());
            case "find":
                return describe(discovery.queryForInstances(NAME));
            case "provided":
                return describe(provider.getAllInstances());
            case "pick":
                ServiceInstance<Object> picked = provider.getInstance();
                return picked == null ? "none" : picked.getId();
            default:
                throw new IllegalArgumentException(words[2]);
        }
    }

    /** The words are: actor, "service", command, ID, type, port, payload, "true" if it is enabled. */
    private static ServiceInstance<Object> instance(String[] words) {
        return new ServiceInstance<>(NAME, words[3], "10.0.0.3", Integer.valueOf(words[5]), null, payload(words[6]),
                1234, ServiceType.valueOf(words[4]), new UriSpec("{scheme}://{address}:{port}/"),
                Boolean.parseBoolean(words[7]));
    }

    /** A payload with a colon is a map. */
    private static Object payload(String text) {
        int colon = text.indexOf(':');
        if (colon < 0) {
            return text;
        }
        Map<String, Object> map = new HashMap<>();
        map.put(text.substring(0, colon), text.substring(colon + 1));
        return map;
    }

    private static String describe(Collection<ServiceInstance<Object>> all) {
        List<String> list = new ArrayList<>();
        for (ServiceInstance<Object> i : all) {
            list.add(String.join(",", i.getId(), i.getServiceType().name(), i.buildUriSpec(),
                    String.valueOf(i.getPayload()), String.valueOf(i.isEnabled())));
        }
        Collections.sort(list);
        return String.join(" ", list);
    }
}
