//go:build !linux

package redistest

import "syscall"

// attributes returns attributes of a child that Ctrl-C in the terminal does not reach. Only Linux can end it with
// this process.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
