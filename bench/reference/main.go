// Command reference serves the references of the benchmarks: "reference bare", "reference forward" or "reference
// target". Each reads its configuration from the environment and serves at the address LISTEN.
package main

import (
	"fmt"
	"net/http"
	"os"
	"time"
)

func main() {
	run, ok := map[string]func(*http.Server) error{"bare": bare, "forward": forward, "target": target}[os.Args[1]]
	if !ok {
		fmt.Fprintln(os.Stderr, "reference: bare, forward or target?")
		os.Exit(2)
	}
	// No server should run without these limits.
	err := run(&http.Server{Addr: os.Getenv("LISTEN"), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute})
	fmt.Fprintln(os.Stderr, "reference:", err)
	os.Exit(1)
}
