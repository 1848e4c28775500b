//go:build !linux

package stage

import (
	"os/exec"
	"syscall"
)

// bindLife does what there is: an interrupt of this program does not reach the other before it is stopped.
func bindLife(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
