"""The script's side of the line protocol, and its checks."""

import faulthandler
import os
import queue
import sys
import threading
import time
import traceback

PATIENCE = 60

_answers = queue.Queue()
_output = threading.Lock()


def listen():
    """Reads the answers of the test, and ends the process when the test has ended."""

    def read():
        for line in sys.stdin:
            _answers.put(line.rstrip("\n"))
        os._exit(3)

    threading.Thread(target=read, daemon=True).start()
    faulthandler.dump_traceback_later(1.5 * PATIENCE)  # shows what hangs


def say(line):
    with _output:
        print(line, flush=True)


def ask(step):
    """Requests an action on the server, and waits for it."""
    say("at " + step)
    answer = _answers.get(timeout=PATIENCE)
    check(answer == "go", f"{step}: the answer is {answer!r}")


def ok(name, *seen):
    """Reports a check that passed, with the values that both servers must have."""
    say(f"ok {name}: " + " ".join(str(s) for s in seen))


def check(condition, otherwise):
    if not condition:
        raise AssertionError(otherwise)


def equal(what, want, got):
    check(want == got, f"{what}: want {want!r}, got {got!r}")


def until(what, condition):
    """Waits until a condition holds."""
    end = time.monotonic() + PATIENCE
    while not condition():
        check(time.monotonic() < end, f"waited too long until {what}")
        time.sleep(0.005)


def next_of(what, arrivals):
    """Waits for the next element."""
    try:
        return arrivals.get(timeout=PATIENCE)
    except queue.Empty:
        raise AssertionError(f"waited too long for {what}") from None


def failure(call, *args, **kwargs):
    """Returns the name of the exception of a call that must fail."""
    try:
        result = call(*args, **kwargs)
    except Exception as e:
        return type(e).__name__
    raise AssertionError(f"no exception; the result is {result!r}")


class Beside:
    """Runs a call on a thread of its own."""

    def __init__(self, call, *args):
        self._result, self._error = None, None
        self._thread = threading.Thread(target=self._run, args=(call, args), daemon=True)
        self._thread.start()

    def _run(self, call, args):
        try:
            self._result = call(*args)
        except BaseException as e:
            traceback.print_exc()
            self._error = e

    def done(self):
        return not self._thread.is_alive()

    def end(self):
        """Waits for the result and returns it."""
        self._thread.join(PATIENCE)
        check(self.done(), "waited too long for the result of a call")
        check(self._error is None, f"the call failed: {self._error!r}")
        return self._result
