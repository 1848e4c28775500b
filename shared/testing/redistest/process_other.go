//go:build !linux

package redistest

import "syscall"

// attributes returns the attributes of a child process. Ctrl-C in the terminal does not reach it. Only Linux can end
// the child with this process.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
