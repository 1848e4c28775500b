package load

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"github.com/lectern-dev/lectern/cli/internal/csvrow"
)

// Format is the format of the records in a file: NDJSON or CSV. [Auto] and "" mean that the format is detected.
type Format string

// The formats. [Auto] decides by the first byte that is not white space: "{" means NDJSON, and any other byte means
// CSV. Without such a byte in the first 4 KiB, the file is NDJSON, unless flags for CSV were given.
const (
	Auto   Format = "auto"
	NDJSON Format = "ndjson"
	CSV    Format = "csv"
)

// item is one line of NDJSON or row of CSV, read from a file.
type item struct {
	line   int
	raw    []byte // as in the file; nil when it was too long to hold
	record []byte // to send, without its line end; nil when there is none
	fault  error  // why there is none; nil for blank lines
}

// source reads the items of one file, and tracks how far the file was read.
type source interface {
	// next returns the next item, and io.EOF after the last item. The slices of an item are valid until the next
	// call.
	next() (item, error)
	// skip reads up to the position at which an earlier run ended, and hashes the skipped bytes.
	skip(to position) error
	position() position
}

// account counts and hashes the bytes of a file that were consumed so far.
type account struct {
	offset int64
	sum    hash.Hash
}

// Write counts and hashes p, the next bytes of the file.
func (a *account) Write(p []byte) (int, error) {
	a.offset += int64(len(p))
	return a.sum.Write(p)
}

// at returns the position after the consumed bytes. line and row are the next numbers, and d is the dialect so far.
func (a *account) at(line, row int, d csvrow.Dialect) position {
	return position{a.offset, line, row, hex.EncodeToString(a.sum.Sum(nil)), d}
}

// ErrCSVFlags is the error for a file of NDJSON if [Options.CSVFlags] is not empty.
var ErrCSVFlags = errors.New("the file is NDJSON, and these flags are for CSV alone")

var byteOrderMark = []byte("\xef\xbb\xbf")

// open returns the source of the records in a file, whose format open detects if o does not name a format. For CSV,
// open also reads the header, guesses the dialect if dialect is zero, and calls o.Guessed.
func open(in io.Reader, name string, o *Options, dialect csvrow.Dialect) (source, error) {
	buffered, err := decoded(in, o.Encoding)
	if err != nil {
		return nil, err
	}
	a := account{sum: sha256.New()}
	// Spreadsheets write a byte order mark.
	if start, _ := buffered.Peek(len(byteOrderMark)); bytes.Equal(start, byteOrderMark) {
		_, _ = buffered.Discard(len(byteOrderMark))
		_, _ = a.Write(byteOrderMark)
	}
	format := o.Format
	if format == Auto || format == "" {
		start, err := buffered.Peek(4096)
		if err != nil && err != io.EOF && !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
		format = CSV
		if trimmed := bytes.TrimLeft(start, " \t\r\n"); len(trimmed) == 0 && len(o.CSVFlags) == 0 || bytes.HasPrefix(trimmed, []byte("{")) {
			format = NDJSON
		}
	}
	if format == NDJSON {
		if len(o.CSVFlags) > 0 {
			return nil, fmt.Errorf("%w: %s; allowed: to leave them out, to import NDJSON and CSV separately, or --format csv", ErrCSVFlags, strings.Join(o.CSVFlags, ", "))
		}
		return &lineSource{account: a, in: buffered, line: 1}, nil
	}
	given := o.Delimiter
	if start, _ := buffered.Peek(len("sep=;\r\n")); separator.Match(start) { // as Excel writes it
		line, err := buffered.ReadSlice('\n')
		if err != nil {
			return nil, err
		}
		_, _ = a.Write(line)
		given = line[len("sep=")]
	}
	start, err := buffered.Peek(buffered.Size())
	if err == nil { // there is more: the last line is not whole
		start = start[:bytes.LastIndexAny(start, "\r\n")+1]
	}
	if dialect == (csvrow.Dialect{}) {
		dialect = csvrow.Guess(start, given)
	}
	if o.Guessed != nil && given == 0 && dialect.Delimiter != ',' {
		o.Guessed(name, dialect.Delimiter)
	}
	s := &rowSource{account: a, in: csvrow.NewReader(buffered, dialect)}
	var header [][]string
	rows := max(o.Tool.HeaderRows, 1)
	for i := range o.SkipRows + rows + o.Tool.After {
		row, err := s.in.Next()
		isHeader := i >= o.SkipRows && i < o.SkipRows+rows
		switch {
		case err == io.EOF || err == nil && isHeader && row.Cells == nil && row.Fault == nil:
			return nil, errors.New("the file ends before its header and the rows after that")
		case err != nil:
			return nil, err
		case isHeader && !utf8.Valid(row.Raw):
			return nil, errEncoding
		case isHeader && row.Fault != nil:
			return nil, fmt.Errorf("line %d, the header: %w", row.Line, row.Fault)
		case i >= o.SkipRows:
			header = append(header, row.Cells)
		}
		_, _ = s.Write(row.Raw)
	}
	if err := o.Tool.Check(header); err != nil {
		return nil, err
	}
	names := o.Tool.Header(header[:rows])
	if s.mapping, err = csvrow.NewMapping(o.Shape, names, o.Tool.Apply(o.Columns, names)); err != nil {
		return nil, err
	}
	s.before = o.SkipRows + rows - 1 + o.Tool.After
	return s, nil
}

// separator matches a first line that names the delimiter, such as "sep=;", which Excel writes.
var separator = regexp.MustCompile(`^sep=[^"\r\n]\r?\n`)

// decoded returns a reader that converts the named encoding to UTF-8. Without a name, decoded expects UTF-8, or
// UTF-16 with a byte order mark. If the beginning of the file seems to be in another encoding, decoded returns
// errEncoding.
func decoded(in io.Reader, name string) (*bufio.Reader, error) {
	const size = 256 << 10
	buffered, err := text(in, size)
	if err != nil {
		return nil, err
	}
	if name != "" {
		encoding, err := htmlindex.Get(name)
		if err != nil {
			return nil, fmt.Errorf("--encoding was given as %q; allowed: a name such as windows-1252, utf-16le or shift_jis", name)
		}
		return bufio.NewReaderSize(transform.NewReader(buffered, encoding.NewDecoder()), size), nil
	}
	start, _ := buffered.Peek(size)
	if bytes.HasPrefix(start, []byte("\xff\xfe")) || bytes.HasPrefix(start, []byte("\xfe\xff")) {
		utf16 := unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM)
		return bufio.NewReaderSize(transform.NewReader(buffered, utf16.NewDecoder()), size), nil
	}
	switch {
	case len(start) < 2:
	case start[0] == 0:
		return nil, errors.New("the file seems to be UTF-16 without a mark: give --encoding utf-16be")
	case start[1] == 0:
		return nil, errors.New("the file seems to be UTF-16 without a mark: give --encoding utf-16le")
	}
	if end := bytes.LastIndexByte(start, '\n'); len(start) == size && end >= 0 {
		start = start[:end]
	}
	if invalid := len(start) - len(bytes.ToValidUTF8(start, nil)); invalid > 0 && looksLikeText(start) {
		return nil, errEncoding
	}
	return buffered, nil
}

// errEncoding is the error for a file that is not UTF-8, if the user named no encoding. The text tells the user how
// to name an encoding.
var errEncoding = errors.New("the file is not UTF-8: it seems to be Windows-1252, as Excel and older programs write it: give --encoding windows-1252, or another such as shift_jis or gbk, or save it as \"CSV UTF-8\"")

// looksLikeText reports whether text that is not valid UTF-8 contains no valid character beyond ASCII. Such a file is
// probably in another encoding, rather than UTF-8 with a few damaged lines.
func looksLikeText(start []byte) bool {
	for len(start) > 0 {
		r, n := utf8.DecodeRune(start)
		if r != utf8.RuneError && n > 1 {
			return false
		}
		start = start[n:]
	}
	return true
}

// lineSource is the [source] of a file of NDJSON. line is the number of the next line, from 1.
type lineSource struct {
	account
	in   *bufio.Reader
	line int
	raw  []byte
}

func (s *lineSource) position() position { return s.at(s.line, 0, csvrow.Dialect{}) }

func (s *lineSource) skip(to position) error {
	_, err := io.CopyN(&s.account, s.in, to.Offset-s.offset)
	s.line = to.Line
	return err
}

func (s *lineSource) next() (item, error) {
	it := item{line: s.line}
	s.raw = s.raw[:0]
	long := false
	for {
		chunk, err := s.in.ReadSlice('\n')
		_, _ = s.Write(chunk)
		if long = long || len(s.raw)+len(chunk) > csvrow.MaxRowBytes+1; !long {
			s.raw = append(s.raw, chunk...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err == io.EOF && len(s.raw) == 0 && !long {
			return item{}, io.EOF
		}
		if err != nil && err != io.EOF {
			return item{}, err
		}
		break
	}
	s.line++
	if long {
		it.fault = fmt.Errorf("the line has more than %d MiB", csvrow.MaxRowBytes>>20)
		return it, nil
	}
	it.raw = s.raw
	if record := bytes.TrimSpace(s.raw); len(record) > 0 {
		it.record = record
	}
	return it, nil
}

// rowSource is the [source] of a CSV file. mapping converts each row to a record in JSON.
type rowSource struct {
	account
	in      *csvrow.Reader
	mapping *csvrow.Mapping
	before  int // rows before the first one with a record, without the first row of the header
	record  []byte
}

func (s *rowSource) position() position {
	line, row := s.in.Position()
	return s.at(line, row, s.in.Dialect)
}

func (s *rowSource) skip(to position) error {
	for s.offset < to.Offset { // the mapping counts equal rows
		if _, err := s.next(); err != nil {
			return err
		}
	}
	return nil
}

func (s *rowSource) next() (item, error) {
	row, err := s.in.Next()
	if err != nil {
		return item{}, err
	}
	_, _ = s.Write(row.Raw)
	// Blank lines before a row are not part of the rejected text.
	it := item{line: row.Line, raw: bytes.TrimLeft(row.Raw, "\r\n"), fault: row.Fault}
	if row.Fault != nil || row.Cells == nil {
		return it, nil
	}
	record, err := s.mapping.Append(s.record[:0], row.Cells, row.Number-s.before)
	if err != nil {
		it.fault = err
		return it, nil
	}
	s.record, it.record = record, record
	return it, nil
}

// rejection is a line of the file of rejects, in JSON. Record is the rejected line without its line break. Record is
// nil if the line was too long to keep or is not valid UTF-8.
type rejection struct {
	File    string  `json:"file"`
	Line    int     `json:"line"`
	Code    string  `json:"code"`
	Message string  `json:"message"`
	Record  *string `json:"record"`
	// Base64 is the rejected line if the line is not valid UTF-8, which JSON cannot contain.
	Base64 []byte `json:"record_base64,omitempty"`
}

// appendRejection appends r to dst as a line of the file of rejects. raw is the rejected line as in the imported
// file, or nil if that line was too long to keep.
func appendRejection(dst []byte, r rejection, raw []byte) []byte {
	raw = bytes.TrimSuffix(bytes.TrimSuffix(raw, []byte("\n")), []byte("\r"))
	switch {
	case raw == nil:
	case utf8.Valid(raw):
		r.Record = new(string(raw))
	default:
		r.Base64 = raw
	}
	line, _ := jsonv2.Marshal(r, jsontext.AllowInvalidUTF8(true)) // of a file's name
	return append(append(dst, line...), '\n')
}
