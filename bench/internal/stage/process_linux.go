package stage

import (
	"os/exec"
	"syscall"
)

// bindLife lets the kernel kill the program of cmd when the benchmark ends. bindLife also keeps Ctrl-C at the terminal
// from the program.
func bindLife(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
