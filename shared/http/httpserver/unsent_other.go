//go:build !linux

package httpserver

import "syscall"

// limitUnsent does nothing: the system decides how much it buffers for a client.
func limitUnsent(string, string, syscall.RawConn) error { return nil }
