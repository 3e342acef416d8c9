import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.Objects;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** The script's side of the line protocol, and its checks. */
final class Control {
    private static final long PATIENCE_MS = 60_000;
    private static final BlockingQueue<String> answers = new LinkedBlockingQueue<>();

    private Control() {
    }

    /** Reads the answers of the test, and ends the process when the test has ended. */
    static void listen() {
        Thread listener = new Thread(() -> {
            try (BufferedReader in = new BufferedReader(new InputStreamReader(System.in))) {
                for (String line; (line = in.readLine()) != null; ) {
                    answers.add(line);
                }
            } catch (Exception e) {
                e.printStackTrace();
            }
            Runtime.getRuntime().halt(3);
        });
        listener.setDaemon(true);
        listener.start();
    }

    /** Requests an action on the server, and waits for it. */
    static void ask(String step) throws Exception {
        say("at " + step);
        String answer = answers.poll(PATIENCE_MS, TimeUnit.MILLISECONDS);
        check("go".equals(answer), step + ": the answer is " + answer);
    }

    /** Reports a check that passed, with the values that both servers must have. */
    static void ok(String name, Object... seen) {
        say("ok " + name + ": " + String.join(" ", Arrays.stream(seen).map(String::valueOf).toList()));
    }

    static void check(boolean condition, String otherwise) {
        if (!condition) {
            throw new AssertionError(otherwise);
        }
    }

    static void equal(String what, Object want, Object got) {
        check(Objects.equals(want, got), what + ": want " + want + ", got " + got);
    }

    /** Waits until a condition holds. */
    static void until(String what, Callable<Boolean> condition) throws Exception {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(PATIENCE_MS);
        while (!condition.call()) {
            check(System.nanoTime() < end, "waited too long until " + what);
            Thread.sleep(5);
        }
    }

    /** Waits for the next element. */
    static <T> T next(String what, BlockingQueue<T> queue) throws Exception {
        T taken = queue.poll(PATIENCE_MS, TimeUnit.MILLISECONDS);
        check(taken != null, "waited too long for " + what);
        return taken;
    }

    /** Returns the error of a call that must fail. */
    static String failure(Callable<?> call) {
        Object result;
        try {
            result = call.call();
        } catch (Exception e) {
            return e.getClass().getSimpleName();
        }
        throw new AssertionError("no exception; the result is " + result);
    }

    /** Returns the error of a call that may fail. */
    static String outcome(Callable<?> call) {
        try {
            call.call();
            return "done";
        } catch (Exception e) {
            return e.getClass().getSimpleName();
        }
    }

    /** Runs a call on a thread of its own. The result has its value or its error. */
    static <T> CompletableFuture<T> beside(Callable<T> call) {
        CompletableFuture<T> result = new CompletableFuture<>();
        Thread thread = new Thread(() -> {
            try {
                result.complete(call.call());
            } catch (Throwable e) {
                result.completeExceptionally(e);
            }
        });
        thread.setDaemon(true);
        thread.start();
        return result;
    }

    static <T> T end(String what, CompletableFuture<T> result) throws Exception {
        try {
            return result.get(PATIENCE_MS, TimeUnit.MILLISECONDS);
        } catch (TimeoutException e) {
            throw new AssertionError("waited too long for " + what, e);
        }
    }

    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
