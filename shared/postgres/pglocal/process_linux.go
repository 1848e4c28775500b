package pglocal

import (
	"os"
	"path/filepath"
	"slices"
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

// childrenOf returns the ids of the child processes of the postmaster pid, which all work in its data folder dir.
func childrenOf(pid int, dir string) []int {
	return slices.DeleteFunc(processesIn(dir), func(other int) bool { return other == pid })
}
