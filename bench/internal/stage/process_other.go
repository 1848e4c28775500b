//go:build !linux

package stage

import (
	"os/exec"
	"syscall"
)

// bindLife only keeps an interrupt of this program from the other before it is stopped.
func bindLife(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
