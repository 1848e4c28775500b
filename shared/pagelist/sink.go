package pagelist

import "sync"

// Format is how a list is written.
type Format byte

const (
	// JSON is one array.
	JSON Format = iota
	// NDJSON is one record a line.
	NDJSON
)

// Verdict is what a Source does with the record that it has come to.
type Verdict byte

const (
	// Take: append it to the sink's Bytes, then call End.
	Take Verdict = iota
	// Skip: this page holds it already, from where it stood before.
	Skip
	// Stop: read no further.
	Stop
)

// Sink collects the encoded records of a chunk. A Source calls Begin for each record, appends to
// Bytes, calls End.
type Sink struct {
	buf    []byte
	format Format
	limit  int // records in the page

	taken int  // records in the page so far
	rows  int  // records that this chunk has come to, taken or skipped
	open  bool // a record has begun and not ended
	cut   bool // the chunk stopped although more may follow
	over  bool // a record stands behind the page's last

	key  int64
	id   []byte
	any  bool
	seen *idSet // of the page, when a record may move forward within it; else nil
}

var buffers = sync.Pool{New: func() any { return new([]byte) }}

func release(b *[]byte) {
	// A buffer that one huge record blew up is not kept for lists of small ones.
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

// begin starts a chunk.
func (s *Sink) begin() {
	if s.buf == nil {
		s.buf = *buffers.Get().(*[]byte)
	}
	s.rows, s.cut = 0, false
	if s.taken == 0 && s.format == JSON && len(s.buf) == 0 {
		s.buf = append(s.buf, '[')
	}
}

// detach hands the chunk's bytes over.
func (s *Sink) detach() *[]byte {
	b := s.buf
	s.buf = nil
	return &b
}

// close ends the list.
func (s *Sink) close() {
	if s.format == JSON {
		s.buf = append(s.buf, "]\n"...)
	}
}

// Begin asks what to do with the record of that key and id, which stands behind all that came before.
func (s *Sink) Begin(key int64, id []byte) Verdict {
	if s.taken == s.limit {
		s.cut, s.over = true, true
		return Stop
	}
	if len(s.buf) >= mostBytes {
		s.cut = true
		return Stop
	}
	s.rows++
	s.key, s.any = key, true
	s.id = append(s.id[:0], id...)
	if s.seen != nil && !s.seen.add(id) {
		return Skip
	}
	if s.format == JSON && s.taken > 0 {
		s.buf = append(s.buf, ",\n"...)
	}
	s.taken++
	s.open = true
	return Take
}

// End completes the record.
func (s *Sink) End() {
	if s.format == NDJSON {
		s.buf = append(s.buf, '\n')
	}
	s.open = false
}

// Cut says that the Source stops here although its list goes on, perhaps within a record that its
// next chunk completes.
func (s *Sink) Cut() { s.cut = true }

// Bytes returns the chunk so far, to be appended to and given back by SetBytes.
func (s *Sink) Bytes() []byte { return s.buf }

// SetBytes gives back what Bytes returned, with more behind it.
func (s *Sink) SetBytes(b []byte) { s.buf = b }

// Full tells whether the chunk holds as many bytes as it should: a Source whose records come in
// parts stops between two of them.
func (s *Sink) Full() bool { return len(s.buf) >= mostBytes }

// position is where the chunk ended, start when it had no record.
func (s *Sink) position(start Position) Position {
	if !s.any {
		return start
	}
	return Position{Key: s.key, ID: string(s.id)}
}

// exhausted tells whether the list ended within a chunk of that limit.
func (s *Sink) exhausted(limit int) bool { return !s.cut && s.rows < limit }
