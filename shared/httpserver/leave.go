package httpserver

import (
	"context"
	"sync/atomic"
)

// attention is what a connection knows of its client's leaving, which ends the contexts of its requests.
//
// net/http finds that out by a read of one byte that it leaves waiting, in a goroutine of its own, while a request is
// answered: to call that back it wakes a thread, for each request. Where [departures] tells the same by itself, that
// read ends at once with nothing, which net/http takes for the end of it.
type attention struct {
	departures *departures // nil: net/http's read waits
	id         uint64      // of the connection, there
	cancel     context.CancelFunc

	gone atomic.Bool // the client closed its side, or was lost
	// turns is odd while a request that was read to its end is answered. Only who reads changes it, which net/http
	// lets be one at a time.
	turns atomic.Uint64
}

// reads notes that the connection is read from: to wait for the client to leave, or for what it sends. It tells
// whether there is no need to.
func (a *attention) reads(forLeaving bool) (needless bool) {
	if a.departures == nil {
		return false
	}
	if turn := a.turns.Load(); forLeaving != isAnswering(turn) {
		a.turns.Store(turn + 1)
	}
	return forLeaving && !a.gone.Load() // who is gone is told so by what the read gets
}

// departed ends what is answered to a client that is gone. Not where it sent something before it went: that is
// read first, as net/http does it, which does not look behind it either.
func (a *attention) departed(nothingLeft func() bool) {
	a.gone.Store(true)
	turn := a.turns.Load()
	if isAnswering(turn) && nothingLeft() && a.turns.Load() == turn {
		a.cancel()
	}
}

// begin notes that what was read to its end is answered from now on, to a client that may be gone already; done, that
// it was.
func (a *attention) begin(nothingLeft func() bool) {
	turn := a.turns.Add(1)
	if a.gone.Load() && nothingLeft() && a.turns.Load() == turn {
		a.cancel()
	}
}

func (a *attention) done() { a.turns.Add(1) }

func isAnswering(turn uint64) bool { return turn%2 == 1 }

// end gives up the connection.
func (a *attention) end() {
	if a.departures != nil {
		a.departures.forget(a.id)
	}
	if a.cancel != nil {
		a.cancel()
	}
}
