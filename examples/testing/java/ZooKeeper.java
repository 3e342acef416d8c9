import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.lang.ProcessBuilder.Redirect;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * Starts a server for the tests of a class, and empties it before each test. The server stops when the
 * process of the tests ends, also if that crashes.
 */
final class ZooKeeper implements BeforeAllCallback, BeforeEachCallback, AfterAllCallback {
    private static final String LISTENING = "zktest: listening on ";

    private final List<String> command = new ArrayList<>();
    private Process process;
    private PrintWriter commands;
    private BufferedReader answers;
    private String connectString;

    ZooKeeper(String... flags) {
        command.add(System.getenv().getOrDefault("ZKTEST", "zktest"));
        command.addAll(List.of("-listen", "127.0.0.1:0", "-commands"));
        command.addAll(List.of(flags));
    }

    @Override
    public void beforeAll(ExtensionContext context) throws IOException {
        process = new ProcessBuilder(command).redirectError(Redirect.INHERIT).start();
        commands = new PrintWriter(process.getOutputStream(), true, StandardCharsets.UTF_8);
        answers = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
        String line = answers.readLine();
        if (line == null || !line.startsWith(LISTENING)) {
            throw new IOException("the server does not start: " + line); // the reason is on standard error
        }
        connectString = line.substring(LISTENING.length());
    }

    @Override
    public void beforeEach(ExtensionContext context) throws IOException {
        tell("wipe");
        tell("readonly off");
        tell("start");
    }

    @Override
    public void afterAll(ExtensionContext context) throws Exception {
        commands.close(); // which ends the server
        process.waitFor();
        answers.close();
    }

    /** Returns the connection string for clients. */
    String connectString() {
        return connectString;
    }

    /** Sends a command and returns what follows "ok" in the answer. */
    synchronized String tell(String command) throws IOException {
        commands.println(command);
        String answer = answers.readLine();
        if (answer == null || !answer.startsWith("ok")) {
            throw new IOException(command + ": " + answer);
        }
        return answer.substring("ok".length()).trim();
    }
}
