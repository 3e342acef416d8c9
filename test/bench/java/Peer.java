import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;

/** A process that measures Curator as requested: see the Go package peer. */
public final class Peer {
    private Peer() {
    }

    public static void main(String[] args) throws Exception {
        say("ready Curator " + args[0] + " on Java " + System.getProperty("java.version"));
        Map<String, Job> jobs = new HashMap<>();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
            String answer;
            try {
                answer = obey(jobs, line.split(" ", 3));
            } catch (UnsupportedOperationException e) {
                answer = "unsupported";
            } catch (Exception e) {
                answer = "failed " + e.toString().replace('\n', ' ');
            }
            say(answer);
        }
        Runtime.getRuntime().halt(0);
    }

    private static String obey(Map<String, Job> jobs, String[] words) throws Exception {
        switch (words[0]) {
            case "open":
                jobs.put(words[1], Job.open(words[2]));
                return "opened";
            case "run":
                return "ran " + jobs.get(words[1]).run(Long.parseLong(words[2]) * 1_000_000);
            case "close":
                jobs.remove(words[1]).close();
                return "closed";
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
