//go:build unix && !linux

package rawtcp

import "syscall"

// read and write tell the scheduler: these systems are called by their library alone.
func read(fd uintptr, p []byte) (int, error)  { return syscall.Read(int(fd), p) }
func write(fd uintptr, p []byte) (int, error) { return syscall.Write(int(fd), p) }

// Arrived returns 0: how many bytes have arrived can not be told.
func (c *Conn) Arrived() int { return 0 }
