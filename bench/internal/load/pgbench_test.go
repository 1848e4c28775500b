package load

import (
	"testing"
	"time"
)

func TestRate(t *testing.T) {
	const said = `progress: 1.0 s, 100.0 tps, lat 9.1 ms stddev 1.0, 0 failed
progress: 2.1 s, 300.0 tps, lat 3.0 ms stddev 1.0, 0 failed
progress: 3.0 s, 500.0 tps, lat 2.0 ms stddev 1.0, 0 failed
progress: 4.0 s, 9.0 tps, lat 2.0 ms stddev 1.0, 0 failed
tps = 227.000000 (without initial connection time)
`
	for _, tc := range []struct {
		name   string
		in     string
		warmUp time.Duration
		want   float64
		ok     bool
	}{
		{"all", said, 0, 227, true},
		{"behind the warm-up, and not the second that may be a part", said, time.Second, 400, true},
		{"nothing was done", "pgbench: error: no connection\n", 0, 0, false},
		{"nothing was said of what counts", "progress: 1.0 s, 100.0 tps, lat 9.1 ms\n", time.Second, 0, false},
		{"nothing was done when it counts", "progress: 2.0 s, 0.0 tps, lat 0.0 ms\n", time.Second, 0, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got, ok := rate(tc.in, tc.warmUp, 2*time.Second); got != tc.want || ok != tc.ok {
				t.Errorf("got %v, %v; want %v, %v", got, ok, tc.want, tc.ok)
			}
		})
	}
}
