package redistest

import "syscall"

// attributes returns the attributes of a child process. Ctrl-C in the terminal does not reach it. The kernel kills the
// child when this process ends in any way.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
