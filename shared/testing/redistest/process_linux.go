package redistest

import "syscall"

// attributes makes a child that Ctrl-C in our terminal does not reach, and that the kernel kills when
// we end, however that happens.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
