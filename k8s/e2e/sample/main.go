// Command sample is an example of a program that uses Lectern from inside its cluster:
//
//	sample consume   reads entries with the API key of a mounted Secret, or with the projected token of a ServiceAccount. Both may
//	                 be rotated meanwhile
//	sample region    asks the region service by its cluster DNS name, with the Go client
//	sample echo      is a third party for the credential proxy: it answers with the digest of a header
//
// The commands consume and region print one JSON object a line, which the end-to-end tests read.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sample:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	out := json.NewEncoder(os.Stdout)
	if len(args) != 1 {
		return fmt.Errorf("%d arguments; want one: consume, region or echo", len(args))
	}
	switch args[0] {
	case "consume":
		return consume(ctx, os.Getenv, out)
	case "region":
		return region(ctx, os.Getenv, out)
	case "echo":
		return echo(ctx)
	}
	return fmt.Errorf("%q is not known; known: consume, region, echo", args[0])
}
