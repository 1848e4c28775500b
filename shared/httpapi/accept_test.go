package httpapi_test

import (
	"testing"

	"github.com/lectern-dev/lectern/shared/httpapi"
)

func TestWeight(t *testing.T) {
	for _, tt := range []struct {
		name   string
		in     []string
		weight float64
		listed bool
	}{
		{"no header", nil, 0, false},
		{"empty", []string{""}, 0, false},
		{"another", []string{"br, gzip2;q=1"}, 0, false},
		{"alone", []string{"gzip"}, 1, true},
		{"in any case, with spaces", []string{"br;q=1.0 ,\tGZIP ; Q=0.5"}, 0.5, true},
		{"refused", []string{"gzip;q=0"}, 0, true},
		{"another parameter", []string{"gzip;level=1;q=0.25"}, 0.25, true},
		{"in the second header", []string{"br", "gzip;q=0.1"}, 0.1, true},
		{"twice", []string{"gzip;q=0.1, gzip"}, 0.1, true},
		{"not a number", []string{"gzip;q=high"}, 0, true},
		{"no value", []string{"gzip;q"}, 0, true},
		{"out of range", []string{"gzip;q=7"}, 1, true},
		{"negative", []string{"gzip;q=-1"}, 0, true},
		{"any is not a name", []string{"*"}, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if weight, listed := httpapi.Weight(tt.in, "gzip"); weight != tt.weight || listed != tt.listed {
				t.Errorf("Weight(%q) = %v, %v; want %v, %v", tt.in, weight, listed, tt.weight, tt.listed)
			}
		})
	}
}
