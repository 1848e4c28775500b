package pglocal

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// attributes returns the attributes of a child process. Ctrl-C in the terminal does not reach the child, because this
// process stops the child itself. The kernel sends the child SIGQUIT when this process ends. Postgres then does an
// immediate shutdown, which also ends its children.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGQUIT}
}

// worksIn reports whether dir is the working folder of the process pid. All processes of a server work in its data
// folder.
func worksIn(pid int, dir string) bool {
	cwd, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "cwd"))
	return err == nil && cwd == dir
}

// processesIn returns the ids of all processes whose working folder is dir.
func processesIn(dir string) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && worksIn(pid, dir) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// childrenOf returns the ids of the living child processes of pid.
func childrenOf(pid int) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, e := range entries {
		child, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		if err != nil {
			continue
		}
		// The name, in parentheses, may contain any characters (proc(5)), so parse only the fields after it.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) > 1 && string(fields[0]) != "Z" && string(fields[1]) == strconv.Itoa(pid) {
			pids = append(pids, child)
		}
	}
	return pids
}
