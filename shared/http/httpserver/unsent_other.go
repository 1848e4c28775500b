//go:build !linux

package httpserver

import "syscall"

// limitUnsent does nothing outside Linux: the operating system decides how much it buffers for a slow client.
func limitUnsent(string, string, syscall.RawConn) error { return nil }
