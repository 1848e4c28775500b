package template

import (
	"bytes"
	"html"
	"mime"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Syntax says how the proxy must escape values in a body.
type Syntax uint8

// The syntaxes of bodies. Verbatim is the last, and thus the number of the syntaxes with inserted values.
const (
	Text     Syntax = iota // values are inserted unchanged
	XML                    // values are inserted unchanged
	JSON                   // values are escaped for a string
	Form                   // values are form-encoded
	Verbatim               // nothing is inserted: placeholders stay text
)

// Media has the properties of a body that follow from a Content-Type. The zero Media is text in UTF-8.
type Media struct {
	Syntax Syntax
	latin  bool // each byte is a character: ISO 8859-1 or windows-1252
}

// MediaOf returns the Media that a Content-Type declares. MediaOf reports false when values cannot be inserted into
// such a body. A body in an unknown character set gets no values, because a search might not find the values in the
// answer. MediaOf also reports false for a Content-Type in which readers may find different character sets.
func MediaOf(contentType string) (Media, bool) {
	media, parameters, err := mime.ParseMediaType(contentType)
	if err != nil { // the unreadable parameter may be the character set
		return Media{}, false
	}
	charset, named := parameters["charset"]
	if mentions := strings.Count(strings.ToLower(contentType), "charset"); mentions > 1 || mentions == 1 && !named || strings.Contains(contentType, "*") {
		return Media{}, false // charset*=, or a charset in the value of another parameter
	}
	latin, known := readCharset(charset)
	if !known {
		return Media{}, false
	}
	switch {
	case media == "application/json", media == "text/json", strings.HasSuffix(media, "+json"):
		return Media{JSON, latin}, true
	case media == "application/x-www-form-urlencoded":
		return Media{Form, latin}, true
	case media == "application/xml", media == "text/xml", strings.HasSuffix(media, "+xml"):
		return Media{XML, latin}, true
	case strings.HasPrefix(media, "text/"):
		return Media{Text, latin}, true
	}
	return Media{}, false
}

// readCharset reports as known whether values may be inserted into text of a character set. The name "" means UTF-8.
// latin reports that each byte is a character.
func readCharset(name string) (latin, known bool) {
	switch strings.ToLower(name) {
	case "", "utf-8", "utf8", "us-ascii":
		return false, true
	case "iso-8859-1", "windows-1252":
		return true, true
	}
	return false, false
}

// Unfit is the reason why a body is not what its Content-Type says. An Unfit contains no text of the body, so callers
// may see the reason.
type Unfit string

// Error returns the reason, which continues a sentence that begins with the body: "is not valid UTF-8".
func (u Unfit) Error() string { return string(u) }

// marks are the beginnings of texts by which readers recognise a character set, such as a byte order mark.
var marks = []string{
	"\xEF\xBB\xBF", "\xFE\xFF", "\xFF\xFE", // UTF-8, UTF-16
	"+/v8", "+/v9", "+/v+", "+/v/", // UTF-7
	"\x4C\x6F\xA7\x94", // "<?xm" in EBCDIC
}

// shifts are characters that no text needs, and that make readers use another character set. NUL leads readers to
// UTF-16 and UTF-32, and the other characters to ISO 2022.
const shifts = "\x00\x0E\x0F\x1B"

// check returns the reason why text is not what m says, nil for none. A target that reads text in another character set
// would return a value in a form that no search finds. check leaves the grammar of JSON to [Examine].
func (m Media) check(text []byte) error {
	for _, mark := range marks {
		if bytes.HasPrefix(text, []byte(mark)) {
			return Unfit("begins with the mark of a character set")
		}
	}
	switch {
	case bytes.ContainsAny(text, shifts):
		return Unfit("holds a NUL, or a character that changes the character set")
	case !m.latin && !utf8.Valid(text):
		return Unfit("is not valid UTF-8")
	}
	switch m.Syntax {
	case Text, XML:
		return m.checkDeclared(text)
	case Form:
		for pair := range bytes.FieldsFuncSeq(text, func(c rune) bool { return c == '&' || c == ';' }) {
			name, value, _ := bytes.Cut(pair, []byte("="))
			if unescapedEqualFold(name, CharsetField) && !IsCharset(value) {
				return Unfit("names another character set in " + CharsetField)
			}
		}
	}
	return nil
}

// CharsetField is the name of the field by which a form names its character set (HTML, section "Naming form controls").
const CharsetField = "_charset_"

// IsCharset reports whether values may be inserted into a form whose field [CharsetField] has the given form-encoded
// value.
func IsCharset(value []byte) bool {
	name, err := url.QueryUnescape(string(value))
	_, known := readCharset(strings.TrimSpace(name))
	return err == nil && known
}

func unescapedEqualFold(text []byte, want string) bool {
	plain, err := url.QueryUnescape(string(text))
	return err == nil && strings.EqualFold(strings.TrimSpace(plain), want)
}

// The expressions find the character sets that a text declares. The expressions find more declarations than a parser
// would, also in comments, because some readers look for a declaration before parsing.
var (
	encodingDeclaration = regexp.MustCompile(`(?i)encoding\s*=\s*["']?([^"'\s?>]*)`)
	metaElement         = regexp.MustCompile(`<\s*(?i:meta)`)
	charsetDeclaration  = regexp.MustCompile(`(?i)charset\s*=\s*["']?([^"'\s;/>]*)`)
	styleDeclaration    = regexp.MustCompile(`(?i)@charset\s*["']?([^"';]*)`)
)

// checkDeclared returns an Unfit if text declares a character set other than UTF-8, or is XML that does not begin with
// "<" after white space. The result is nil for no such fault.
func (m Media) checkDeclared(text []byte) error {
	start := bytes.TrimLeft(text, " \t\r\n\f")
	if m.Syntax == XML && !bytes.HasPrefix(start, []byte("<")) {
		return Unfit("does not begin with <, as XML does")
	}
	declared := func(by *regexp.Regexp, in []byte) bool {
		for _, found := range by.FindAllSubmatch(in, -1) {
			if name := strings.ToLower(string(found[1])); name != "utf-8" && name != "utf8" {
				return true
			}
		}
		return false
	}
	if bytes.HasPrefix(start, []byte("<?")) {
		head := start // some readers take the declaration to end at the last "?>", or need no end
		if end := bytes.LastIndex(start, []byte("?>")); end >= 0 {
			head = start[:end]
		}
		if declared(encodingDeclaration, head) {
			return Unfit("declares an encoding other than UTF-8")
		}
	}
	if metaElement.Match(text) && declared(charsetDeclaration, []byte(html.UnescapeString(string(text)))) {
		return Unfit("declares a charset other than UTF-8")
	}
	if declared(styleDeclaration, start[:min(len(start), 1024)]) {
		return Unfit("declares a charset other than UTF-8")
	}
	return nil
}
