package ingest

import (
	"bytes"
	"errors"
	"io"
)

const (
	firstBuffer = 64 << 10
	// keptBuffer is the size in bytes of the largest buffer that a lines keeps after a long line.
	keptBuffer = 1 << 20
)

// byteOrderMark is U+FEFF in UTF-8. Some programs write this mark at the beginning of a file.
var byteOrderMark = []byte("\uFEFF")

// lines reads lines of bounded length from a source. lines skips a longer line without keeping the whole line in
// memory.
type lines struct {
	source io.Reader
	max    int // longest line in bytes, without its end

	buffer []byte
	begin  int   // of the bytes not returned yet
	end    int   // of the bytes read
	looked int   // bytes after begin without a line end
	number int64 // of the last line returned, from 1
	over   error // the error that ended the source; the buffer is read first
}

// next returns the next line without its end (LF or CRLF). The line is valid until the next call. For a line that is
// too long, line is nil and tooLong is true. After the last line, the error is [io.EOF]. Any other error is that of
// the source, and next does not return the incomplete line before the error.
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

// give counts a line and returns it without the byte order mark and the CR. A line that is then longer than l.max is
// too long.
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

// skip counts a line that is too long and skips the rest of the line. The error is that of the source, if the source
// fails before the line ends.
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

// fill makes room in the buffer and reads more bytes from the source. fill keeps the error of the source in l.over.
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
