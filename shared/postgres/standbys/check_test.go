package standbys

import (
	"testing"
	"time"
)

func TestHistory(t *testing.T) {
	t.Parallel()
	type seen struct {
		system, lsn int64
		at          time.Duration
	}
	for _, tt := range []struct {
		name     string
		seen     []seen
		replayed position
		old      bool
	}{
		{"primary never reached", nil, position{1, 5}, false},
		{"all replayed", []seen{{1, 10, 0}, {1, 20, time.Second}}, position{1, 20}, false},
		{"a little to replay", []seen{{1, 10, 0}, {1, 20, time.Second}}, position{1, 10}, false},
		{"something to replay since the first mark", []seen{{1, 10, 0}, {1, 20, time.Second}}, position{1, 9}, true},
		{"the oldest mark that counts", []seen{{1, 10, 0}, {1, 20, time.Second}, {1, 30, historySpan}}, position{1, 10}, false},
		{"something to replay for too long", []seen{{1, 10, 0}, {1, 20, time.Second}, {1, 30, historySpan + 1}}, position{1, 19}, true},
		{"idle for long", []seen{{1, 10, 0}, {1, 10, time.Hour}}, position{1, 10}, false},
		{"the primary did not answer for long", []seen{{1, 10, 0}, {1, 20, time.Hour}}, position{1, 10}, false},
		{"the primary answers again", []seen{{1, 10, 0}, {1, 20, time.Hour}, {1, 30, time.Hour + 1}}, position{1, 10}, true},
		{"another primary", []seen{{1, 10, 0}, {1, 90, time.Second}, {1, 20, 2 * time.Second}}, position{1, 20}, false},
		{"another node of the cluster", []seen{{1, 10, 0}}, position{2, 1}, false},
		{"a primary of another system", []seen{{1, 90, 0}, {2, 10, time.Second}}, position{2, 10}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var h history
			begin := time.Now()
			for _, s := range tt.seen {
				h = h.add(mark{position{s.system, s.lsn}, begin.Add(s.at)})
			}
			if got := tt.replayed.isBefore(h.oldest()); got != tt.old {
				t.Errorf("too old: %v, want %v", got, tt.old)
			}
		})
	}
}
