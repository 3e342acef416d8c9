import java.util.Collection;
import java.util.concurrent.Executor;

/** A lock of any kind, for one thread. */
interface Contended {
    /** Waits for so many milliseconds, or without a limit if that is negative. */
    boolean acquire(long ms) throws Exception;

    void release() throws Exception;

    default Collection<String> participants() throws Exception {
        throw new UnsupportedOperationException();
    }

    default void revocable(Runnable asked) {
        throw new UnsupportedOperationException();
    }

    /** For listeners: the thread that calls them. */
    Executor SAME_THREAD = Runnable::run;
}
