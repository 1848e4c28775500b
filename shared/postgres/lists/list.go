// Package lists reads an ordered list page by page and chunk by chunk. The package reads records after the key of
// the last record, not by offset. So a page deep in a list costs as much as the first page. OFFSET only finds the end
// of a page, from within the page, in steps of settleRecords keys.
//
// The package owns the promises of every list:
//
//   - The last key of a page is settled before its first byte, and the page ends at that key. So the link to the next
//     page stays true, even if records change while the page is sent.
//   - In a page with a limit of 500 or more, no record comes twice, even if the record moves within the list meanwhile.
//   - Memory does not grow with the limit: a chunk is bounded in records and bytes. Only a page whose records can move
//     grows, by 9 to 14 bytes for each record.
//   - A database that fails for a moment does not cut off a page that has begun. The chunk is tried again for up to 10
//     s.
//   - A chunk's database connection is returned before the chunk is handed out.
//   - Each statement after the first waits for its turn, if its context has a [Limiter]. The first statement also waits
//     if the page has more than 100 records, or if no index serves its filter. Package service adds
//     the Limiter.
//
// A [Source] reads the records. [Query] is the source over Postgres, which turns rows into JSON without a struct for
// each row.
package lists

import (
	"context"
	"iter"
	"math"
	"sync"
	"time"

	"github.com/lectern-dev/lectern/shared/panics"
)

// Position is a position in an ordered list: the sort key of a record, with its id to break ties. Times are Unix
// microseconds. An empty ID compares less than every id, in both directions: a descending list after {Key, ""} leaves
// out the records of Key.
type Position struct {
	Key int64
	ID  string
}

// Source reads the records of one ordered list for one page. A Source may keep state between its chunks.
type Source interface {
	// Chunk gives sink the records after the position after, up to and with end, in order, at most limit. Chunk stops
	// early when the sink has enough, and holds no database connection when it returns. After a [Retryable] error, the
	// same call is repeated, and adds the records that the sink does not have.
	Chunk(ctx context.Context, sink *Sink, after, end Position, limit int) error

	// Settle finds the position of the n-th record after the position after, up to end. If there are fewer records, or
	// n is [All], last is the position of the last record. found reports whether there is a record at all, and more
	// whether another record follows last. Settle reads only keys, and no whole records.
	Settle(ctx context.Context, after, end Position, n int) (last Position, found, more bool, err error)
}

// All is the limit of a page that takes every record of its range.
const All = math.MaxInt

// Page asks for a part of a list: the records after After, up to and with End, and at most Limit of them.
type Page struct {
	After, End Position // the records after After, up to and with End
	Limit      int      // at most so many records; at least 1
	Format     Format
	Moves      bool // a record may move forward in the list's order while it is read
	Scans      bool // the filter has no index: a statement may pass any number of records
}

// Bounds of a chunk. The first chunk is small, so that the first byte comes early. Chunks grow to a size that keeps
// Postgres and the network busy.
const (
	firstRecords = 500
	smallRecords = 101 // a page of at most 100 records reads its first chunk without a turn
	mostRecords  = 5000
	goalBytes    = 1 << 20 // a chunk aims at this many encoded bytes
	mostBytes    = 1 << 20 // a chunk stops after the record with which it exceeds this

	settleRecords = 50_000 // the index entries that one statement passes to find a page's end
)

const (
	// patience is how long a page that has begun retries to read a chunk. If no try succeeds, the server cuts the
	// answer off, and the client has to begin again.
	patience = 10 * time.Second
	// pause is the time between two tries to read a chunk.
	pause = 100 * time.Millisecond
)

// Memory is about how many bytes a page of several chunks holds: the chunk that is sent and the chunk that is read
// ahead. Large records take more.
const Memory = 2 * mostBytes

// List is a page that is being read. [Open] reads the first chunk into memory, and [List.Chunks] reads the further
// chunks if there are any.
type List struct {
	ctx   context.Context
	src   Source
	sink  *Sink
	next  *Position
	after Position
	end   Position
	more  bool // chunks follow the first
}

// Open reads the first chunk of the page and settles where the page ends. The caller closes the List.
func Open(ctx context.Context, src Source, page Page) (*List, error) {
	l := &List{ctx: ctx, src: src, sink: newSink(page)}
	// One record more than the page needs shows whether there is a next page.
	ask := min(page.Limit, firstRecords-1) + 1
	first := func() error { return src.Chunk(ctx, l.sink, page.After, page.End, ask) }
	var err error
	if page.Scans || ask > smallRecords {
		err = Limited(ctx, first)
	} else {
		err = first()
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	l.after, l.end = l.sink.position(page.After), page.End
	switch {
	case l.sink.pageFull:
		next := l.after
		l.next = &next
	case l.sink.exhausted(ask):
	default:
		if err := l.settle(page); err != nil {
			l.Close()
			return nil, err
		}
	}
	if !l.more {
		l.sink.close()
	}
	return l, nil
}

// settle finds the last key of a page that may continue after its first chunk, and whether a record follows the page.
// If the first chunk ends inside a record (see [Sink.Cut]), another chunk follows, even if that record is the page's
// last.
func (l *List) settle(page Page) error {
	remaining := page.Limit
	if remaining != All {
		remaining -= l.sink.taken
	}
	last, found, more, err := l.seek(max(remaining, 1))
	if err != nil {
		return err
	}
	switch {
	case !found: // no record follows
		l.end = l.after
	case remaining == 0: // the page is full, and a record follows
		last = l.after
		l.end, l.next = last, &last
	default:
		l.end = last
		if more {
			l.next = &last
		}
	}
	if l.end != l.after || l.sink.inRecord {
		l.more = true
	}
	return nil
}

// seek finds the n-th record after the first chunk, as [Source.Settle] does. seek may run several statements, because
// one statement that passes a million rows of an index would keep its turn for too long.
func (l *List) seek(n int) (last Position, found, more bool, err error) {
	after := l.after
	for {
		step := n
		if n != All {
			step = min(n, settleRecords)
		}
		var p Position
		var some bool
		err = Limited(l.ctx, func() (err error) {
			p, some, more, err = l.src.Settle(l.ctx, after, l.end, step)
			return err
		})
		if err != nil || !some {
			return last, found, false, err
		}
		last, found = p, true
		if n == All || n == step || !more {
			return last, found, more, nil
		}
		n -= step
		after = p
	}
}

// Next returns the position after which the next page begins, or nil if there is no next page.
func (l *List) Next() *Position { return l.next }

// Begun returns how many records the first chunk has, or 0 if the page is empty. Begun must be called before
// [List.Chunks], which counts its own records too.
func (l *List) Begun() int { return l.sink.taken }

// Whole returns the first chunk, and reports whether it is the whole body of the page. Whole must be called before
// [List.Chunks].
func (l *List) Whole() ([]byte, bool) { return l.sink.buf, !l.more }

// Chunks yields the body chunk by chunk, and reads the next chunk while the caller writes the one before. The bytes of
// a chunk are valid until the caller asks for the next chunk. The first error ends the sequence. A panic of the Source
// reaches the caller.
func (l *List) Chunks() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		if !l.more {
			yield(l.sink.buf, nil)
			return
		}
		ctx, cancel := context.WithCancel(l.ctx)
		type chunk struct {
			buf  *[]byte
			err  error
			last bool
		}
		ahead := make(chan chunk)
		var reader sync.WaitGroup
		defer reader.Wait()
		defer cancel()
		size := len(l.sink.buf) / max(l.sink.taken, 1)
		first := l.sink.detach()
		reader.Go(func() {
			limit := grow(firstRecords, size)
			for {
				last, err := l.read(ctx, limit)
				size = len(l.sink.buf) / max(l.sink.rows, 1)
				limit = grow(limit, size)
				select {
				case ahead <- chunk{l.sink.detach(), err, last}:
				case <-ctx.Done():
					return
				}
				if err != nil || last {
					return
				}
			}
		})
		ok := yield(*first, nil)
		release(first)
		for ok {
			var c chunk
			select {
			case c = <-ahead:
			case <-l.ctx.Done():
				yield(nil, l.ctx.Err())
				return
			}
			if c.err != nil {
				panics.Rethrow(c.err)
				yield(nil, c.err)
				return
			}
			ok = yield(*c.buf, nil) && !c.last
			release(c.buf)
		}
	}
}

// read fills the sink with the next chunk and reports whether it is the last chunk. If the error is [Retryable], read
// tries again for as long as patience.
func (l *List) read(ctx context.Context, limit int) (last bool, err error) {
	defer panics.Catch(&err)
	for start := time.Now(); ; {
		l.sink.begin()
		err = Limited(ctx, func() error {
			return l.src.Chunk(ctx, l.sink, l.after, l.end, limit)
		})
		if err == nil {
			break
		}
		if !Retryable(err) || time.Since(start) > patience {
			return false, err
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(pause):
		}
	}
	l.after = l.sink.position(l.after)
	if l.sink.exhausted(limit) || l.after == l.end && !l.sink.inRecord {
		l.sink.close()
		return true, nil
	}
	return false, nil
}

// grow returns how many records the next chunk may have. limit is the last chunk's limit, and size the bytes of a
// record.
func grow(limit, size int) int {
	return max(1, min(limit*2, mostRecords, goalBytes/max(size, 1)))
}

// Close frees the memory that the List still holds. The bytes that Whole and Chunks returned are no longer valid then.
func (l *List) Close() {
	if l.sink.buf != nil {
		release(l.sink.detach())
	}
}
