package ingest

import (
	"bytes"
	"errors"
	"io"
)

const (
	firstBuffer = 64 << 10
	// keptBuffer is the largest buffer that is kept after a long line made it grow.
	keptBuffer = 1 << 20
)

// byteOrderMark is U+FEFF in UTF-8. Some programs write it at the beginning of their files.
var byteOrderMark = []byte("\uFEFF")

// lines reads lines of bounded length. It skips a longer line and does not keep it.
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
// too long it returns nil and tooLong. After the last line the error is [io.EOF]. Another error is the source's: next
// does not return the line that it broke off.
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

// give counts a line, and removes the byte order mark and the CR.
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

// skip skips the rest of a line that is too long. It returns the source's error. An error at the line's end is
// returned with the next line.
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

// fill makes room in the buffer and reads more.
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
