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
    """Listens to the other side. When that is gone there is nobody to run for."""

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
    """Has something done to the server, and waits until it is."""
    say("at " + step)
    answer = _answers.get(timeout=PATIENCE)
    check(answer == "go", f"{step}: the answer is {answer!r}")


def ok(name, *seen):
    """Reports a check that passed, with what both servers must show alike."""
    say(f"ok {name}: " + " ".join(str(s) for s in seen))


def check(condition, otherwise):
    if not condition:
        raise AssertionError(otherwise)


def equal(what, want, got):
    check(want == got, f"{what}: want {want!r}, got {got!r}")


def until(what, condition):
    """Waits until something holds."""
    end = time.monotonic() + PATIENCE
    while not condition():
        check(time.monotonic() < end, f"waited too long until {what}")
        time.sleep(0.005)


def next_of(what, arrivals):
    """Takes the next of what arrives."""
    try:
        return arrivals.get(timeout=PATIENCE)
    except queue.Empty:
        raise AssertionError(f"waited too long for {what}") from None


def failure(call, *args, **kwargs):
    """The name of the exception of a call that must fail."""
    try:
        result = call(*args, **kwargs)
    except Exception as e:
        return type(e).__name__
    raise AssertionError(f"no exception; the result is {result!r}")


class Beside:
    """Runs something beside the script."""

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
        """The result, when there is one."""
        self._thread.join(PATIENCE)
        check(self.done(), "waited too long for what runs beside")
        check(self._error is None, f"what runs beside failed: {self._error!r}")
        return self._result
