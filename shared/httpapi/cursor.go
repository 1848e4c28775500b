package httpapi

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strconv"

	"github.com/lectern-dev/lectern/shared/pagelist"
	"github.com/lectern-dev/lectern/shared/wire"
)

// Binding is what a cursor belongs to: a project's list in one order under the same filters. A cursor
// sent with any other is refused.
type Binding struct {
	Project    string
	List       string // the list's name, and what it is of: "entry-events"
	Of         string // the record that the list is of, if it is of one
	Sort       string
	Descending bool
	Filters    []string // each in one canonical form

	Least, Most int64 // what a record's sort key can be
}

// A cursor is base64url of version, key (8 bytes), id, and a check of all this and of the binding. The
// check is no secret: it keeps a client from carrying a cursor to where it means nothing. Whoever makes
// one up can only start to read at another place of a list that is theirs.
const (
	cursorVersion = 1
	checkBytes    = 16
	cursorHead    = 1 + 8
)

// Cursor gives the text that stands for p under b.
func (b Binding) Cursor(p pagelist.Position) string {
	raw := make([]byte, cursorHead, cursorHead+len(p.ID)+checkBytes)
	raw[0] = cursorVersion
	binary.BigEndian.PutUint64(raw[1:], uint64(p.Key))
	raw = append(raw, p.ID...)
	check := b.check(raw)
	return base64.RawURLEncoding.EncodeToString(append(raw, check[:checkBytes]...))
}

// Position reads the parameter "cursor" of q, start when it was not given. A text that [Binding.Cursor]
// did not make for the same binding is a fault of q.
func (b Binding) Position(q *Query, start pagelist.Position) pagelist.Position {
	const name = "cursor"
	if !q.Has(name) {
		return start
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(q.Text(name))
	if err == nil && len(raw) >= cursorHead+checkBytes && raw[0] == cursorVersion {
		body, given := raw[:len(raw)-checkBytes], raw[len(raw)-checkBytes:]
		if check := b.check(body); bytes.Equal(given, check[:checkBytes]) {
			p := pagelist.Position{Key: int64(binary.BigEndian.Uint64(body[1:])), ID: string(body[cursorHead:])}
			if p.Key >= b.Least && p.Key <= b.Most && (p.ID == "" || wire.ValidIdentifier(p.ID)) {
				return p
			}
		}
	}
	q.Fail(name, "the cursor of the previous answer, with the same project, list, sort, direction and filters")
	return start
}

func (b Binding) check(body []byte) [sha256.Size]byte {
	text := make([]byte, 0, 256)
	part := func(s string) {
		text = binary.AppendUvarint(text, uint64(len(s)))
		text = append(text, s...)
	}
	for _, s := range []string{b.Project, b.List, b.Of, b.Sort} {
		part(s)
	}
	if b.Descending {
		part("DESC")
	} else {
		part("ASC")
	}
	for _, f := range b.Filters {
		part(f)
	}
	return sha256.Sum256(append(text, body...))
}

// FormatBound gives a bound on a time the one form that a [Binding]'s filters have it in.
func FormatBound(micros int64) string { return strconv.FormatInt(micros, 10) }
