import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.net.Socket;

/** The resource that the locks protect. It checks by itself which users are in it together. */
final class Resource implements AutoCloseable {
    private final Socket socket;
    private final PrintWriter out;
    private final BufferedReader in;

    Resource(String name, String role) throws IOException {
        String[] address = Peer.resource.split(":");
        socket = new Socket(address[0], Integer.parseInt(address[1]));
        socket.setTcpNoDelay(true);
        out = new PrintWriter(socket.getOutputStream(), false);
        in = new BufferedReader(new InputStreamReader(socket.getInputStream()));
        ask(name + " " + role + " java");
    }

    /** Enters, and returns whether the resource has enough. */
    boolean enter() throws IOException {
        return ask("enter").equals("enough");
    }

    void leave() throws IOException {
        ask("leave");
    }

    private String ask(String line) throws IOException {
        out.print(line + "\n");
        out.flush();
        String answer = in.readLine();
        if (answer == null) {
            throw new IOException("the resource has closed the connection");
        }
        return answer;
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}
