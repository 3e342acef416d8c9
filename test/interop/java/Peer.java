import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;

/** A process that uses Curator as requested: see the Go package beside this folder. */
public final class Peer {
    static String servers;
    static int sessionMs;
    static String resource;

    private Peer() {
    }

    public static void main(String[] args) throws Exception {
        servers = args[0];
        sessionMs = Integer.parseInt(args[1]);
        resource = args[2];
        say("ready");
        Map<String, Actor> actors = new HashMap<>();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
            String[] words = line.split(" ");
            actors.computeIfAbsent(words[0], Actor::new).tell(words);
        }
        for (Actor actor : actors.values()) {
            actor.close();
        }
        Runtime.getRuntime().halt(0);
    }

    /** Prints one line. Any thread may call it. */
    static void say(String line) {
        synchronized (System.out) {
            System.out.println(line);
            System.out.flush();
        }
    }
}
