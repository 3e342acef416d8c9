import java.util.Collection;
import java.util.concurrent.Executor;

/** A lock of any kind, as one thread uses it. */
interface Contended {
    /** Waits for so long, or without end if that is negative. */
    boolean acquire(long ms) throws Exception;

    void release() throws Exception;

    default Collection<String> participants() throws Exception {
        throw new UnsupportedOperationException();
    }

    default void revocable(Runnable asked) {
        throw new UnsupportedOperationException();
    }

    /** For listeners: the thread that is told of them. */
    Executor SAME_THREAD = Runnable::run;
}
