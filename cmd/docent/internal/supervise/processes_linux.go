package supervise

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"unsafe"
)

// process is a process as /proc shows it.
type process struct {
	pid, parent int
	started     string // in ticks of the clock: pid and started never name two processes
}

// readProcess returns the process with the given pid, if there is one.
func readProcess(pid int) (process, bool) {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return process{}, false
	}
	// The second field is a name in parentheses, which may contain anything.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const parent, started = 4 - 3, 22 - 3 // proc(5) counts from 1, and fields begins with the third
	if len(fields) <= started {
		return process{}, false
	}
	ppid, err := strconv.Atoi(string(fields[parent]))
	return process{pid: pid, parent: ppid, started: string(fields[started])}, err == nil
}

// processes returns all processes.
func processes() []process {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }()
	names, _ := dir.Readdirnames(-1)
	var all []process
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if p, found := readProcess(pid); found {
				all = append(all, p)
			}
		}
	}
	return all
}

// descendants are all processes below this one. A process whose parent has ended becomes a child of
// this one, see adopt: so it remains a descendant.
type descendants struct {
	earlier []int            // children that this process had before Run; not counted
	look    func() []process // returns all processes; nil: processes
}

// adopt makes this process the parent of all processes below it whose own parent has ended.
func adopt() error {
	const setChildSubreaper = 36 // of prctl(2)
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, setChildSubreaper, 1, 0, 0, 0, 0); errno != 0 {
		return os.NewSyscallError("prctl", errno)
	}
	return nil
}

func (d descendants) all() []process {
	if d.look != nil {
		return d.look()
	}
	return processes()
}

// children returns the children of this process, those included that have ended and wait for reap.
func (d descendants) children() []process {
	return slices.DeleteFunc(d.all(), func(p process) bool {
		return p.parent != os.Getpid() || slices.Contains(d.earlier, p.pid)
	})
}

// list returns all descendants.
func (d descendants) list() []process {
	below := map[int][]process{}
	for _, p := range d.all() {
		below[p.parent] = append(below[p.parent], p)
	}
	var members []process
	next := slices.DeleteFunc(below[os.Getpid()], func(p process) bool { return slices.Contains(d.earlier, p.pid) })
	for len(next) > 0 {
		p := next[0]
		members = append(members, p)
		next = append(next[1:], below[p.pid]...)
	}
	return members
}

func signalAll(all []process, sig syscall.Signal) {
	for _, p := range all {
		p.signal(sig)
	}
}

// signal sends a signal to the process, and to no later process with the same pid.
func (p process) signal(sig syscall.Signal) {
	handle, err := os.FindProcess(p.pid) // from here on handle means one process
	if err != nil {
		return
	}
	defer func() { _ = handle.Release() }()
	if same, found := readProcess(p.pid); found && same.started == p.started {
		_ = handle.Signal(sig)
	}
}

// reap removes the children that have ended, and returns the others. It leaves the process kept. A child
// that ends between the look and its removal may have left processes, which the look has found below
// that child. So reap looks again until no child has ended.
func (d descendants) reap(kept int) []process {
	for {
		all := slices.DeleteFunc(d.children(), func(p process) bool { return p.pid == kept })
		found := len(all)
		left := slices.DeleteFunc(all, func(p process) bool {
			reaped, err := wait(p.pid, syscall.WNOHANG, nil)
			return reaped == p.pid || errors.Is(err, syscall.ECHILD)
		})
		if len(left) == found {
			return left
		}
	}
}

// kill kills all descendants and waits until they have ended. It leaves the process kept to be reaped, but
// kills it too. ended receives a signal when a child has ended.
func (d descendants) kill(kept int, ended <-chan os.Signal) {
	for {
		signalAll(d.list(), syscall.SIGKILL) // without those that are created meanwhile
		gone := kept == 0 || exited(kept)    // first: now what it has left are children, too
		if len(d.reap(kept)) == 0 && gone {
			return
		}
		<-ended // each process that was killed is a child, or becomes one
	}
}

// wait is wait4(2), which it repeats when a signal interrupts it.
func wait(pid, options int, status *syscall.WaitStatus) (int, error) {
	for {
		got, err := syscall.Wait4(pid, status, options, nil)
		if err != syscall.EINTR {
			return got, err
		}
	}
}

// exited reports whether a child has ended. The child is not reaped, so its pid remains its own.
func exited(pid int) bool { return changed(pid, syscall.WEXITED|syscall.WNOWAIT) }

// stopped reports whether a child has been stopped since the last call.
func stopped(pid int) bool { return changed(pid, syscall.WSTOPPED) }

// changed reports whether waitid(2) finds the child in one of the states.
func changed(pid, states int) bool {
	const byPID = 1
	var info [128 / 8]uint64 // a siginfo_t, which begins with the number of the signal
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, byPID, uintptr(pid), uintptr(unsafe.Pointer(&info)),
			uintptr(states|syscall.WNOHANG), 0, 0)
		if errno != syscall.EINTR {
			return errno == 0 && *(*int32)(unsafe.Pointer(&info)) != 0
		}
	}
}
