package lists

import "sync"

// Format is the encoding of a list's body: one JSON array, or JSON lines.
type Format byte

const (
	// JSON is a body of one JSON array.
	JSON Format = iota
	// NDJSON is a body of one JSON record a line.
	NDJSON
)

// Verdict is the answer of [Sink.Begin]: it tells a Source whether to take the current record, skip it, or stop.
type Verdict byte

const (
	// Take: append the record to the sink's Bytes, then call End.
	Take Verdict = iota
	// Skip: do not append the record. The page holds the record already, from its earlier position.
	Skip
	// Stop: read no further record, because the page or the chunk is full.
	Stop
)

// Sink collects the encoded records of a chunk. A Source calls Begin for each record. If Begin returns Take, the Source
// appends the record to Bytes and calls End.
type Sink struct {
	buf    []byte
	format Format
	limit  int // records in the page

	taken    int  // records in the page so far
	rows     int  // records that this chunk has reached, taken or skipped
	inRecord bool // a record has begun and not ended
	more     bool // the chunk stopped, and the list may go on
	pageFull bool // a record follows the page's last

	hasPosition bool // key and id are those of the last record that the page has reached
	key         int64
	id          []byte
	seen        *idSet // of the page, when a record may move forward within it; else nil
}

var buffers = sync.Pool{New: func() any { return new([]byte) }}

func release(b *[]byte) {
	// Do not keep a buffer that one huge record has grown.
	if cap(*b) <= 2*mostBytes {
		*b = (*b)[:0]
		buffers.Put(b)
	}
}

func newSink(page Page) *Sink {
	s := &Sink{format: page.Format, limit: page.Limit}
	if page.Moves && page.Limit >= firstRecords {
		s.seen = newIDSet()
	}
	s.begin()
	return s
}

// begin starts a chunk. After a failed try of the same chunk, begin keeps the records that the try has added.
func (s *Sink) begin() {
	if s.buf == nil {
		s.buf = *buffers.Get().(*[]byte)
	}
	s.rows, s.more = 0, false
	if s.taken == 0 && s.format == JSON && len(s.buf) == 0 {
		s.buf = append(s.buf, '[')
	}
}

// detach returns the chunk's bytes and leaves the sink without a buffer.
func (s *Sink) detach() *[]byte {
	b := s.buf
	s.buf = nil
	return &b
}

// close ends the JSON array of the body with a bracket. close writes nothing to a body of NDJSON.
func (s *Sink) close() {
	if s.format == JSON {
		s.buf = append(s.buf, "]\n"...)
	}
}

// Begin returns whether the Source takes the record with the key and id, skips it, or stops. The record must come after
// all earlier records in the list's order.
func (s *Sink) Begin(key int64, id []byte) Verdict {
	if s.taken == s.limit {
		s.more, s.pageFull = true, true
		return Stop
	}
	if len(s.buf) >= mostBytes {
		s.more = true
		return Stop
	}
	s.rows++
	s.key, s.hasPosition = key, true
	s.id = append(s.id[:0], id...)
	if s.seen != nil && !s.seen.add(id) {
		return Skip
	}
	if s.format == JSON && s.taken > 0 {
		s.buf = append(s.buf, ",\n"...)
	}
	s.taken++
	s.inRecord = true
	return Take
}

// End completes the record that Begin began, with a newline in NDJSON.
func (s *Sink) End() {
	if s.format == NDJSON {
		s.buf = append(s.buf, '\n')
	}
	s.inRecord = false
}

// Cut tells the sink that the chunk ends although the list continues. A Source may cut within a record, and complete
// the record in the next chunk.
func (s *Sink) Cut() { s.more = true }

// Bytes returns the bytes of the chunk so far. The Source appends a record and gives the slice back with SetBytes.
func (s *Sink) Bytes() []byte { return s.buf }

// SetBytes gives back the slice that Bytes returned, with more bytes appended.
func (s *Sink) SetBytes(b []byte) { s.buf = b }

// Full reports whether the chunk has reached its size in bytes. A Source whose records come in parts stops between
// two parts.
func (s *Sink) Full() bool { return len(s.buf) >= mostBytes }

// position returns the position of the last record that the page has reached, or start if the page has no record yet.
func (s *Sink) position(start Position) Position {
	if !s.hasPosition {
		return start
	}
	return Position{Key: s.key, ID: string(s.id)}
}

// exhausted reports whether the list has no further record: a chunk of up to limit records got fewer and did not stop
// early.
func (s *Sink) exhausted(limit int) bool { return !s.more && s.rows < limit }
