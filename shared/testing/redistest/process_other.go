//go:build !linux

package redistest

import "syscall"

// attributes makes a child that Ctrl-C in our terminal does not reach. Only Linux can end it with us.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
