// Command reference runs one of the reference servers of the benchmarks: "reference bare", "reference forward" or
// "reference target". Each server reads its configuration from the environment, and listens at the address in LISTEN.
package main

import (
	"fmt"
	"net/http"
	"os"
	"time"
)

func main() {
	var run func(*http.Server) error
	if len(os.Args) == 2 {
		run = map[string]func(*http.Server) error{"bare": bare, "forward": forward, "target": target}[os.Args[1]]
	}
	if run == nil {
		fmt.Fprintln(os.Stderr, "reference: bare, forward or target?")
		os.Exit(2)
	}
	// These time-outs are set because a server without them keeps slow and idle connections for ever.
	err := run(&http.Server{Addr: os.Getenv("LISTEN"), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute})
	fmt.Fprintln(os.Stderr, "reference:", err)
	os.Exit(1)
}
