package row

import (
	"testing"
	"time"
)

func TestShare(t *testing.T) {
	before := parts{time.Millisecond, 0, 0, 0, 0}
	after := parts{3 * time.Millisecond, 2 * time.Millisecond, 4 * time.Millisecond, 0, time.Millisecond}
	spent := after.less(before)
	if got, want := spent.all(), 9*time.Millisecond; got != want {
		t.Errorf("in all %v, want %v", got, want)
	}
	s := share{parts{}.plus(spent).plus(spent), 4}
	const want = "service 1000, coordinator 1000, workers 2000, keys 0, redis 500"
	if got := s.String(); got != want {
		t.Errorf("of a request: %s; want %s", got, want)
	}
}
