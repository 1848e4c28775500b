//go:build !linux

package stage

import (
	"os/exec"
	"syscall"
)

// bindLife keeps Ctrl-C at the terminal from the program of cmd, so that the benchmark can stop the program. Only
// Linux can also kill the program when the benchmark is killed.
func bindLife(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
