import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.cache.CuratorCache;

/** The caches of an actor, by path. */
final class Caches {
    private final Map<String, CuratorCache> all = new HashMap<>();

    String act(CuratorFramework client, String[] words) {
        String path = words[2];
        switch (words[1]) {
            case "cache":
                all.put(path, CuratorCache.build(client, path));
                all.get(path).start();
                return "started";
            case "cached":
                return list(all.get(path), path);
            default:
                all.remove(path).close();
                return "ended";
        }
    }

    private static String list(CuratorCache cache, String path) {
        Map<String, String> nodes = new TreeMap<>();
        cache.stream().forEach(node -> nodes.put(node.getPath().substring(path.length()),
                new String(node.getData(), StandardCharsets.UTF_8)));
        StringBuilder text = new StringBuilder("cached");
        nodes.forEach((name, data) -> text.append(' ').append(name).append('=').append(data));
        return text.toString();
    }
}
