package limits

import (
	"net/http"
	"strconv"
	"time"
)

// The headers' names as net/http stores them. On the wire, case does not matter.
const (
	limitHeader  = "Ratelimit"
	policyHeader = "Ratelimit-Policy"
)

// WriteHeader sets the headers RateLimit and RateLimit-Policy as draft-ietf-httpapi-ratelimit-headers defines them:
//
//	RateLimit: "default";r=1999;t=1          requests left; seconds until the whole burst is available again
//	RateLimit-Policy: "default";q=2000;w=2   the burst; seconds in which the rate earns the burst
//
// Seconds are rounded up. WriteHeader sets no header when no rate applies.
func (r Result) WriteHeader(h http.Header) {
	if r.Rate.PerSecond == 0 {
		return
	}
	var buf [128]byte
	b := append(buf[:0], `"default";r=`...)
	b = strconv.AppendInt(b, int64(r.Remaining), 10)
	b = append(b, `;t=`...)
	b = strconv.AppendInt(b, seconds(r.ResetAfter), 10)
	n := len(b)
	b = append(b, `"default";q=`...)
	b = strconv.AppendInt(b, int64(r.Rate.Burst), 10)
	b = append(b, `;w=`...)
	b = strconv.AppendInt(b, int64((r.Rate.Burst+r.Rate.PerSecond-1)/r.Rate.PerSecond), 10)
	text := string(b)
	values := []string{text[:n], text[n:]}
	h[limitHeader], h[policyHeader] = values[:1:1], values[1:]
}

func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
