package httpserver

import (
	"bytes"
	"errors"
)

// framing follows the bytes that a client sends, before net/http reads them, for shapes that two
// readers may take for different requests (RFC 9112, section 11.2). net/http is lenient with them, as
// the RFC allows: it frames the request by one of its lengths, joins folded lines and takes a line feed
// for the end of a line. A client that sends one has a fault or an attack in mind, and is refused:
//
//   - Content-Length beside Transfer-Encoding, or the latter in HTTP/1.0 (section 6.1)
//
//   - a header line that is continued on the next (obs-fold, section 5.2)
//
//   - a line that ends without a carriage return, in a head or between chunks (section 2.2)
//
//   - a Content-Length that is no number, of more than 18 digits, or on a line of more than 64 bytes
//
//   - what begins as the preface of HTTP/2 and does not go on as one (RFC 9113, section 3.4)
//
// Everything else goes on as it came: whatever is malformed net/http refuses itself. Behind a preface
// of HTTP/2 nothing is looked at.
type framing struct {
	at    place
	left  uint64 // bytes of a body or chunk still to come
	line  []byte // as much of the line as decides something: of a request line the end, else the beginning
	last  byte   // the byte before, within a line
	empty bool   // the line has no byte yet but a carriage return
	// What the head that is being read says of its body.
	length  uint64
	lengths int  // fields Content-Length
	coded   bool // Transfer-Encoding
	old     bool // HTTP/1.0
	begun   bool // the first line of the connection is over
	skipped bool // an empty line came before the request's
	refused error
}

// place is where in a request the next byte stands.
type place byte

const (
	inRequestLine place = iota
	inField
	inBody
	inChunkSize
	inChunk
	inChunkEnd
	inTrailer
	inPreface // of HTTP/2, behind its first line
	unwatched // no longer to be understood, or HTTP/2
)

// The faults; net/http answers 400 and ends the connection.
var (
	errTwoFramings = errors.New("Content-Length beside Transfer-Encoding")
	errOldCoded    = errors.New("Transfer-Encoding in HTTP/1.0")
	errFolded      = errors.New("a header line is continued on the next")
	errBareLF      = errors.New("a line ends without a carriage return")
	errPreface     = errors.New("the preface of HTTP/2 is not whole")
	errLength      = errors.New("Content-Length is no number, or written too long")
)

const (
	preface = "PRI * HTTP/2.0"
	// deciding is how much of a line is kept: any field that frames, and its value.
	deciding = 64
)

func newFraming() framing { return framing{empty: true, line: make([]byte, 0, deciding)} }

// isAtRequest tells whether the next byte begins a request.
func (f *framing) isAtRequest() bool { return f.at == inRequestLine && len(f.line) == 0 && !f.skipped }

// isBetween tells whether a request was read to its end, and nothing behind it.
func (f *framing) isBetween() bool { return f.begun && f.isAtRequest() }

// watch follows the framing over b and returns how much of it may be given on.
func (f *framing) watch(b []byte) int {
	for i := 0; i < len(b); {
		switch f.at {
		case unwatched:
			return len(b)
		case inBody, inChunk:
			step := min(f.left, uint64(len(b)-i))
			f.left -= step
			i += int(step)
			if f.left == 0 {
				f.bodyRead()
			}
		default:
			end := bytes.IndexByte(b[i:], '\n')
			if end < 0 {
				if !f.within(b[i:]) {
					return i
				}
				return len(b)
			}
			if !f.within(b[i : i+end]) {
				return i
			}
			if !f.lineRead() {
				return i + end // without the line feed no line ends, and no request begins
			}
			i += end + 1
		}
	}
	return len(b)
}

// bodyRead goes on after a body or a chunk.
func (f *framing) bodyRead() {
	if f.at == inChunk {
		f.at = inChunkEnd
	} else {
		f.at = inRequestLine
	}
	f.newLine()
}

func (f *framing) newLine() { f.line, f.last, f.empty = f.line[:0], 0, true }

// within takes a part of a line; false when it is refused.
func (f *framing) within(part []byte) bool {
	if len(part) == 0 {
		return true
	}
	if len(f.line) == 0 && (f.at == inField || f.at == inTrailer) && (part[0] == ' ' || part[0] == '\t') {
		f.refused = errFolded
		return false
	}
	if f.at == inRequestLine {
		tail := part[max(0, len(part)-deciding):]
		over := max(0, len(f.line)+len(tail)-deciding)
		f.line = append(f.line[:copy(f.line, f.line[over:])], tail...)
	} else {
		f.line = append(f.line, part[:min(deciding-len(f.line), len(part))]...)
	}
	f.last = part[len(part)-1]
	if len(part) > 1 || part[0] != '\r' {
		f.empty = false
	}
	return true
}

// lineRead takes the end of a line; false when it is refused.
func (f *framing) lineRead() bool {
	if f.last != '\r' {
		f.refused = errBareLF
		return false
	}
	line, whole := f.line, len(f.line) < deciding || f.line[len(f.line)-1] == '\r'
	if whole {
		line = line[:len(line)-1]
	}
	switch f.at {
	case inRequestLine:
		if f.empty { // net/http passes over it behind a POST (section 2.2), and else refuses it
			f.skipped = true
			break
		}
		f.skipped = false
		if !f.begun && string(line) == preface {
			f.at = inPreface
			break
		}
		f.begun = true
		f.at, f.length, f.lengths, f.coded = inField, 0, 0, false
		f.old = bytes.HasSuffix(line, []byte(" HTTP/1.0"))
	case inField:
		if !f.empty {
			if f.field(line, whole); f.refused != nil {
				return false
			}
			break
		}
		return f.headRead()
	case inChunkSize:
		if size, ok := hexadecimal(line); !ok {
			f.at = unwatched
		} else if size == 0 {
			f.at = inTrailer
		} else {
			f.at, f.left = inChunk, size
		}
	case inPreface: // "", "SM", ""
		if f.lengths++; string(line) != [...]string{1: "", 2: "SM", 3: ""}[f.lengths] {
			f.refused = errPreface
			return false
		}
		if f.lengths == 3 {
			f.at = unwatched
		}
	case inChunkEnd:
		f.at = inChunkSize
	case inTrailer:
		if f.empty {
			f.at = inRequestLine
		}
	}
	f.newLine()
	return true
}

// field takes one header line, as far as it says where the body ends. It may refuse it.
func (f *framing) field(line []byte, whole bool) {
	name, value, ok := bytes.Cut(line, []byte{':'})
	if !ok {
		return
	}
	switch {
	case equalFold(name, "content-length"):
		length, ok := decimal(bytes.TrimSpace(value))
		if !ok || !whole || f.lengths > 0 && length != f.length {
			f.refused = errLength
			return
		}
		f.length = length
		f.lengths++
	case equalFold(name, "transfer-encoding"):
		f.coded = true
	}
}

// headRead takes the end of a head; false when it is refused.
func (f *framing) headRead() bool {
	switch {
	case f.coded && f.lengths > 0:
		f.refused = errTwoFramings
		return false
	case f.coded && f.old:
		f.refused = errOldCoded
		return false
	case f.coded:
		f.at = inChunkSize
	case f.length > 0:
		f.at, f.left = inBody, f.length
	default:
		f.at = inRequestLine
	}
	f.newLine()
	return true
}

// equalFold tells whether a field's name is lower, which is in lower case. What stands around the name
// makes it malformed, and the request with it.
func equalFold(name []byte, lower string) bool {
	return len(name) == len(lower) && bytes.EqualFold(name, []byte(lower))
}

// decimal reads a Content-Length (RFC 9110, section 8.6).
func decimal(b []byte) (n uint64, ok bool) {
	if len(b) == 0 || len(b) > 18 {
		return 0, false
	}
	for _, d := range b {
		if d < '0' || d > '9' {
			return 0, false
		}
		n = n*10 + uint64(d-'0')
	}
	return n, true
}

// hexadecimal reads a chunk's size, which may be followed by extensions (RFC 9112, section 7.1).
func hexadecimal(b []byte) (n uint64, ok bool) {
	b, _, _ = bytes.Cut(b, []byte{';'})
	b = bytes.TrimRight(b, " \t")
	if len(b) == 0 || len(b) > 15 {
		return 0, false
	}
	for _, d := range b {
		switch {
		case '0' <= d && d <= '9':
			d -= '0'
		case 'a' <= d && d <= 'f':
			d -= 'a' - 10
		case 'A' <= d && d <= 'F':
			d -= 'A' - 10
		default:
			return 0, false
		}
		n = n<<4 | uint64(d)
	}
	return n, true
}
