package h1

import (
	"container/list"
	"slices"
	"sync"
	"time"
)

// idle keeps connections between requests.
type idle struct {
	each, all int // at most, by place and altogether
	timeout   time.Duration

	mu     sync.Mutex
	of     map[place][]*list.Element // the last used is the last
	ages   *list.List                // of *conn, the last used in front
	sweep  *time.Timer               // nil: none is set
	closed bool
}

func (i *idle) init(each, all int, timeout time.Duration) {
	i.each, i.all, i.timeout = each, all, timeout
	i.of, i.ages = map[place][]*list.Element{}, list.New()
}

// take returns a connection that can be used, the one that was used last; nil when there is none.
func (i *idle) take(at place) *conn {
	for {
		c := i.last(at)
		if c == nil || time.Since(c.since) < i.timeout && c.quiet() {
			return c
		}
		_ = c.Conn.Close() // it is of no use
	}
}

func (i *idle) last(at place) *conn {
	i.mu.Lock()
	defer i.mu.Unlock()
	kept := i.of[at]
	if len(kept) == 0 {
		return nil
	}
	return i.remove(kept[len(kept)-1])
}

// put keeps a connection, or closes it when enough are kept.
func (i *idle) put(c *conn) {
	if over := i.add(c); over != nil {
		_ = over.Conn.Close() // nothing is under way on it
	}
}

// add keeps a connection, and returns the one that is not kept for that.
func (i *idle) add(c *conn) (over *conn) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed || len(i.of[c.place]) >= i.each {
		return c
	}
	c.used, c.since = true, time.Now()
	i.of[c.place] = append(i.of[c.place], i.ages.PushFront(c))
	if i.sweep == nil {
		i.sweep = time.AfterFunc(i.every(), i.clean)
	}
	if i.ages.Len() > i.all {
		return i.remove(i.ages.Back())
	}
	return nil
}

// remove takes a connection out. The lock is held.
func (i *idle) remove(e *list.Element) *conn {
	c := i.ages.Remove(e).(*conn)
	kept := i.of[c.place]
	at := slices.Index(kept, e)
	if kept = slices.Delete(kept, at, at+1); len(kept) == 0 {
		delete(i.of, c.place)
	} else {
		i.of[c.place] = kept
	}
	return c
}

// every is how often connections are looked through for those that have ended: one that the target has closed
// would hold a socket on either side until its time is up.
func (i *idle) every() time.Duration { return max(i.timeout/6, time.Millisecond) }

// clean closes what is too old, or closed by its target.
func (i *idle) clean() {
	var over []*conn
	i.mu.Lock()
	for e := i.ages.Back(); e != nil; {
		next := e.Prev()
		if c := e.Value.(*conn); time.Since(c.since) >= i.timeout || !c.quiet() {
			over = append(over, i.remove(e))
		}
		e = next
	}
	if i.ages.Len() == 0 {
		i.sweep = nil
	} else {
		i.sweep.Reset(i.every())
	}
	i.mu.Unlock()
	for _, c := range over {
		_ = c.Conn.Close() // it is of no use
	}
}

// close closes all connections, and keeps none that comes.
func (i *idle) close() {
	var over []*conn
	i.mu.Lock()
	i.closed = true
	for i.ages.Len() > 0 {
		over = append(over, i.remove(i.ages.Back()))
	}
	if i.sweep != nil {
		i.sweep.Stop()
		i.sweep = nil
	}
	i.mu.Unlock()
	for _, c := range over {
		_ = c.Conn.Close() // nothing is under way on it
	}
}
