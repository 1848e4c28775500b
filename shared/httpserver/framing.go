package httpserver

import (
	"bytes"
	"errors"
	"net"
)

// framed is a connection whose bytes are looked at before net/http reads them, for shapes that two
// readers may take for different requests (RFC 9112, section 11.2). net/http is lenient with them, as
// the RFC allows: it frames the request by one of its lengths, joins folded lines and takes a line feed
// for the end of a line. A client that sends one has a fault or an attack in mind, and is refused:
//
//   - Content-Length beside Transfer-Encoding, or the latter in HTTP/1.0 (section 6.1)
//   - a header line that is continued on the next (obs-fold, section 5.2)
//   - a line that ends without a carriage return, in a head or between chunks (section 2.2)
//
// Everything else goes on as it came: whatever is malformed net/http refuses itself. A connection that
// begins with the preface of HTTP/2 (RFC 9113, section 3.4) is not looked at.
type framed struct {
	transport
	state framing
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
	refused error
}

// transport is what net/http and the handlers ask of a connection: [net.TCPConn]. What it can do besides
// would go past Read.
type transport interface {
	net.Conn
	CloseWrite() error
	SetLinger(seconds int) error
}

// framing is where in a request the next byte stands.
type framing byte

const (
	inRequestLine framing = iota
	inField
	inBody
	inChunkSize
	inChunk
	inChunkEnd
	inTrailer
	unwatched // no longer to be understood, or HTTP/2
)

// The faults; net/http answers 400 and ends the connection.
var (
	errTwoFramings = errors.New("Content-Length beside Transfer-Encoding")
	errOldCoded    = errors.New("Transfer-Encoding in HTTP/1.0")
	errFolded      = errors.New("a header line is continued on the next")
	errBareLF      = errors.New("a line ends without a carriage return")
)

const (
	preface = "PRI * HTTP/2.0"
	// deciding is how much of a line is kept: any field that frames, and its value.
	deciding = 64
)

func newFramed(conn transport) *framed {
	return &framed{transport: conn, empty: true, line: make([]byte, 0, deciding)}
}

// Read reads up to the first byte that is refused.
func (c *framed) Read(p []byte) (int, error) {
	if c.refused != nil {
		return 0, c.refused
	}
	n, err := c.transport.Read(p)
	if c.state == unwatched {
		return n, err
	}
	if good := c.watch(p[:n]); c.refused != nil {
		if good == 0 {
			return 0, c.refused
		}
		return good, nil // the fault comes with the next call
	}
	return n, err
}

// watch follows the framing over b and returns how much of it may be given on.
func (c *framed) watch(b []byte) int {
	for i := 0; i < len(b); {
		switch c.state {
		case unwatched:
			return len(b)
		case inBody, inChunk:
			step := min(c.left, uint64(len(b)-i))
			c.left -= step
			i += int(step)
			if c.left == 0 {
				c.bodyRead()
			}
		default:
			end := bytes.IndexByte(b[i:], '\n')
			if end < 0 {
				if !c.within(b[i:]) {
					return i
				}
				return len(b)
			}
			if !c.within(b[i : i+end]) {
				return i
			}
			if !c.lineRead() {
				return i + end // without the line feed no line ends, and no request begins
			}
			i += end + 1
		}
	}
	return len(b)
}

// bodyRead goes on after a body or a chunk.
func (c *framed) bodyRead() {
	if c.state == inChunk {
		c.state = inChunkEnd
	} else {
		c.state = inRequestLine
	}
	c.newLine()
}

func (c *framed) newLine() { c.line, c.last, c.empty = c.line[:0], 0, true }

// within takes a part of a line; false when it is refused.
func (c *framed) within(part []byte) bool {
	if len(part) == 0 {
		return true
	}
	if len(c.line) == 0 && (c.state == inField || c.state == inTrailer) && (part[0] == ' ' || part[0] == '\t') {
		c.refused = errFolded
		return false
	}
	if c.state == inRequestLine {
		tail := part[max(0, len(part)-deciding):]
		over := max(0, len(c.line)+len(tail)-deciding)
		c.line = append(c.line[:copy(c.line, c.line[over:])], tail...)
	} else {
		c.line = append(c.line, part[:min(deciding-len(c.line), len(part))]...)
	}
	c.last = part[len(part)-1]
	if len(part) > 1 || part[0] != '\r' {
		c.empty = false
	}
	return true
}

// lineRead takes the end of a line; false when it is refused.
func (c *framed) lineRead() bool {
	if c.last != '\r' {
		c.refused = errBareLF
		return false
	}
	line, whole := c.line, len(c.line) < deciding || c.line[len(c.line)-1] == '\r'
	if whole {
		line = line[:len(line)-1]
	}
	switch c.state {
	case inRequestLine:
		if !c.begun && string(line) == preface {
			c.state = unwatched
			return true
		}
		c.begun = true
		c.state, c.length, c.lengths, c.coded = inField, 0, 0, false
		c.old = bytes.HasSuffix(line, []byte(" HTTP/1.0"))
	case inField:
		if !c.empty {
			c.field(line, whole)
			break
		}
		return c.headRead()
	case inChunkSize:
		if size, ok := hexadecimal(line); !ok {
			c.state = unwatched
		} else if size == 0 {
			c.state = inTrailer
		} else {
			c.state, c.left = inChunk, size
		}
	case inChunkEnd:
		c.state = inChunkSize
	case inTrailer:
		if c.empty {
			c.state = inRequestLine
		}
	}
	c.newLine()
	return true
}

// field takes one header line, as far as it says where the body ends.
func (c *framed) field(line []byte, whole bool) {
	name, value, ok := bytes.Cut(line, []byte{':'})
	if !ok {
		return
	}
	switch {
	case equalFold(name, "content-length"):
		length, ok := decimal(bytes.TrimSpace(value))
		if !ok || !whole || c.lengths > 0 && length != c.length {
			// No length that net/http takes: it answers 400, and ends the connection.
			length = 0
		}
		c.length = length
		c.lengths++
	case equalFold(name, "transfer-encoding"):
		c.coded = true
	}
}

// headRead takes the end of a head; false when it is refused.
func (c *framed) headRead() bool {
	switch {
	case c.coded && c.lengths > 0:
		c.refused = errTwoFramings
		return false
	case c.coded && c.old:
		c.refused = errOldCoded
		return false
	case c.coded:
		c.state = inChunkSize
	case c.length > 0:
		c.state, c.left = inBody, c.length
	default:
		c.state = inRequestLine
	}
	c.newLine()
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
