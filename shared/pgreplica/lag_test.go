package pgreplica

import (
	"testing"
	"time"
)

func TestHistory(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(s float64) time.Time { return begin.Add(time.Duration(s * float64(time.Second))) }
	type seen struct {
		lsn int64
		at  float64
	}
	for _, tt := range []struct {
		name  string
		seen  []seen
		where position
		now   float64
		want  time.Duration
	}{
		{"primary never reached", nil, position{lsn: 5, lag: time.Minute}, 100, time.Minute},
		{"all replayed", []seen{{10, 0}, {20, 50}}, position{lsn: 20}, 100, 0},
		{"ahead of what was seen", []seen{{10, 0}}, position{lsn: 30}, 100, 0},
		{"idle for long", []seen{{10, 0}, {10, 50}, {10, 99}}, position{lsn: 10}, 100, 0},
		{"since the second mark", []seen{{10, 0}, {20, 90}, {30, 95}}, position{lsn: 10}, 100, 10 * time.Second},
		{"since the third mark", []seen{{10, 0}, {20, 90}, {30, 95}}, position{lsn: 25}, 100, 5 * time.Second},
		{"behind all that was seen", []seen{{10, 0}, {20, 90}}, position{lsn: 1}, 100, 100 * time.Second},
		{"watched too briefly", []seen{{10, 99}}, position{lsn: 1, lag: time.Hour}, 100, time.Hour},
		{"another primary", []seen{{10, 0}, {90, 50}, {20, 95}}, position{lsn: 20}, 100, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := history{span: 10 * time.Second}
			for _, s := range tt.seen {
				h.add(s.lsn, at(s.at))
			}
			if got := h.lag(tt.where, at(tt.now)); got != tt.want {
				t.Errorf("lag %v, want %v", got, tt.want)
			}
		})
	}
	h := history{span: 10 * time.Second}
	for i := range 100_000 {
		h.add(int64(i), at(float64(i)/100))
	}
	if len(h.marks) > 200 {
		t.Errorf("%d marks are kept", len(h.marks))
	}
}
