package main

import (
	"context"
	"io"
	"strings"
	"testing"
)

// Faults of the command line are reported before anything is started.
func TestRunRefuses(t *testing.T) {
	t.Setenv("CITUS_KIT", "")
	for _, tc := range []struct {
		name string
		in   []string
		want string
	}{
		{"a cluster without what starts one", []string{"-citus"}, "CITUS_KIT"},
		{"no round", []string{"-rounds", "0"}, "-rounds"},
		{"a file of results that is not there", []string{"-compare", "/nonexistent/results.json"}, "/nonexistent/results.json"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := run(context.Background(), tc.in, io.Discard, io.Discard)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error that names %s", err, tc.want)
			}
		})
	}
}
