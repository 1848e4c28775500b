package ingest

import (
	"bytes"
	"errors"
	"io"
)

const (
	firstBuffer = 64 << 10
	// keptBuffer is the most that is kept when a long line made the buffer grow.
	keptBuffer = 1 << 20
)

// byteOrderMark is U+FEFF in UTF-8: some programs begin their files with it.
var byteOrderMark = []byte("\uFEFF")

// lines reads lines of bounded length. A longer one is passed over without being kept.
type lines struct {
	source io.Reader
	max    int // longest line in bytes, without its end

	buffer []byte
	begin  int   // of what was not given out
	end    int   // of what was read
	looked int   // bytes after begin that hold no end of line
	number int64 // of the last line given out, from 1
	over   error // what ended the source, after what is in the buffer
}

// next returns the next line without its end (LF or CRLF). It is valid until the next call. One that
// is too long comes as nil with tooLong. After the last line the error is [io.EOF]; another is the
// source's, and the line that it broke off is not given out.
func (l *lines) next() (line []byte, tooLong bool, err error) {
	for {
		rest := l.buffer[l.begin:l.end]
		if i := bytes.IndexByte(rest[l.looked:], '\n'); i >= 0 {
			line = rest[:l.looked+i]
			l.begin += len(line) + 1
			return l.give(line)
		}
		l.looked = len(rest)
		if l.over != nil {
			if len(rest) == 0 || !errors.Is(l.over, io.EOF) {
				return nil, false, l.over
			}
			l.begin = l.end
			return l.give(rest)
		}
		if len(rest) > l.max+len("\r")+l.markBytes() {
			return nil, true, l.skip()
		}
		l.fill()
	}
}

func (l *lines) markBytes() int {
	if l.number == 0 {
		return len(byteOrderMark)
	}
	return 0
}

// give counts a line and takes off what does not belong to it.
func (l *lines) give(line []byte) ([]byte, bool, error) {
	l.looked = 0
	if l.number == 0 {
		line = bytes.TrimPrefix(line, byteOrderMark)
	}
	l.number++
	line = bytes.TrimSuffix(line, []byte("\r"))
	if len(line) > l.max {
		return nil, true, nil
	}
	return line, false, nil
}

// skip passes over the rest of a line that is too long. The error is the source's; one at the line's
// end shows with the next line.
func (l *lines) skip() error {
	l.number++
	for {
		l.begin, l.end, l.looked = 0, 0, 0
		if len(l.buffer) > keptBuffer {
			l.buffer = make([]byte, firstBuffer)
		}
		if l.over != nil {
			if errors.Is(l.over, io.EOF) {
				return nil
			}
			return l.over
		}
		l.fill()
		if i := bytes.IndexByte(l.buffer[:l.end], '\n'); i >= 0 {
			l.begin = i + 1
			return nil
		}
	}
}

// fill makes room in the buffer, and reads more after the bytes that it holds.
func (l *lines) fill() {
	if l.begin > 0 {
		l.end = copy(l.buffer, l.buffer[l.begin:l.end])
		l.begin = 0
		if len(l.buffer) > keptBuffer && l.end < firstBuffer {
			l.buffer = append(make([]byte, 0, firstBuffer), l.buffer[:l.end]...)[:firstBuffer]
		}
	}
	if l.end == len(l.buffer) {
		grown := make([]byte, max(firstBuffer, 2*len(l.buffer)))
		copy(grown, l.buffer[:l.end])
		l.buffer = grown
	}
	n, err := l.source.Read(l.buffer[l.end:])
	l.end += n
	l.over = err
}
