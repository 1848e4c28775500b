package httpserver

import (
	"slices"
	"testing"
	"time"
)

// bounded notes the write deadlines that the system is told, and the one at each write.
type bounded struct {
	transport
	told []time.Time
	at   []time.Time
}

func (b *bounded) SetWriteDeadline(t time.Time) error {
	b.told = append(b.told, t)
	return nil
}

func (b *bounded) Write(p []byte) (int, error) {
	var at time.Time
	if len(b.told) > 0 {
		at = b.told[len(b.told)-1]
	}
	b.at = append(b.at, at)
	return len(p), nil
}

// Answers one behind the other go on with a write deadline that leaves enough; nobody else is bound by it.
func TestWriteDeadlines(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	by := func(seconds int) time.Time { return now.Add(time.Duration(seconds) * time.Second) }
	answer := func(c *conn, at, leaves int) { // as an exchange does, and net/http behind it
		if !c.goesOn(by(at), time.Duration(leaves)*time.Second) {
			_ = c.SetWriteDeadline(by(at + leaves + leaves/4))
		}
		_, _ = c.Write([]byte("answer"))
		_ = c.SetWriteDeadline(time.Time{})
	}
	write := func(c *conn) { _, _ = c.Write([]byte("of net/http")) }
	var none time.Time
	for _, tt := range []struct {
		name     string
		do       func(*conn)
		told, at []time.Time
	}{
		{"nothing is bound", write, nil, []time.Time{none}},
		{"many answers", func(c *conn) { answer(c, 0, 40); answer(c, 5, 40); answer(c, 10, 40) }, []time.Time{by(50)}, []time.Time{by(50), by(50), by(50)}},
		{"too little is left", func(c *conn) { answer(c, 0, 40); answer(c, 11, 40) }, []time.Time{by(50), by(61)}, []time.Time{by(50), by(61)}},
		{"an answer of net/http behind one", func(c *conn) { answer(c, 0, 40); write(c); write(c) }, []time.Time{by(50), none}, []time.Time{by(50), none, none}},
		{"another answer behind that", func(c *conn) { answer(c, 0, 40); write(c); answer(c, 1, 40) }, []time.Time{by(50), none, by(51)}, []time.Time{by(50), none, by(51)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := &bounded{}
			tt.do(newConn(b, nil, nil))
			if !slices.Equal(b.told, tt.told) || !slices.Equal(b.at, tt.at) {
				t.Errorf("told %v, writes at %v; want %v, %v", b.told, b.at, tt.told, tt.at)
			}
		})
	}
}
