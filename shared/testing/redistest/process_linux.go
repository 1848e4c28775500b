package redistest

import "syscall"

// attributes returns attributes of a child that Ctrl-C in the terminal does not reach. The kernel kills the child
// when this process ends in any way.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
