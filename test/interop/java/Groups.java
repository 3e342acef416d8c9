import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.zookeeper.CreateMode;

/** The groups of an actor, and the nodes that it keeps, by path. */
final class Groups {
    private final Map<String, GroupMember> groups = new HashMap<>();
    private final Map<String, PersistentNode> nodes = new HashMap<>();

    String act(CuratorFramework client, String[] words) throws Exception {
        String path = words[2];
        switch (words[1]) {
            case "join":
                groups.put(path, new GroupMember(client, path, words[3], bytes(words[4])));
                groups.get(path).start();
                return "joined";
            case "payload":
                groups.get(path).setThisData(bytes(words[3]));
                return "set";
            case "members":
                return list(groups.get(path).getCurrentMembers());
            case "leave":
                groups.remove(path).close();
                return "left";
            case "keep":
                nodes.put(path, new PersistentNode(client, CreateMode.EPHEMERAL, false, path, bytes(words[3])));
                nodes.get(path).start();
                return "kept";
            default:
                nodes.get(path).waitForInitialCreate(1, TimeUnit.MINUTES);
                nodes.remove(path).close();
                return "dropped";
        }
    }

    private static String list(Map<String, byte[]> members) {
        StringBuilder all = new StringBuilder("members");
        new TreeMap<>(members).forEach((id, data) ->
                all.append(' ').append(id).append('=').append(new String(data, StandardCharsets.UTF_8)));
        return all.toString();
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
