package stage

import (
	"os/exec"
	"syscall"
)

// bindLife lets the kernel end the program when this one is killed.
func bindLife(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
