package row

import (
	"fmt"
	"strings"
	"time"
)

// parts is processor time by program.
type parts [5]time.Duration

// partNames names those of parts; keys are those of the keys' Postgres.
func partNames() [5]string { return [5]string{"service", "coordinator", "workers", "keys", "redis"} }

func (p parts) all() (sum time.Duration) {
	for _, d := range p {
		sum += d
	}
	return sum
}

func (p parts) plus(q parts) parts {
	for i := range p {
		p[i] += q[i]
	}
	return p
}

func (p parts) less(q parts) parts {
	for i := range p {
		p[i] -= q[i]
	}
	return p
}

// share is the total processor time of a number of requests.
type share struct {
	parts
	requests int64
}

// String returns each program's part of a request, in microseconds.
func (s share) String() string {
	said := make([]string, len(s.parts))
	for i, name := range partNames() {
		said[i] = fmt.Sprintf("%s %d", name, s.parts[i].Microseconds()/max(s.requests, 1))
	}
	return strings.Join(said, ", ")
}
