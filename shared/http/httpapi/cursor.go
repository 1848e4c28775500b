package httpapi

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/lectern-dev/lectern/shared/postgres/lists"
	"github.com/lectern-dev/lectern/shared/wire"
)

// Binding identifies the list that a cursor belongs to: a project's list in one order under the same filters. The API
// refuses a cursor that a client sends with another list.
type Binding struct {
	Project    string
	List       string // the list's name: "entry-events"
	Of         string // the id of the record that the list belongs to, if any
	Sort       string
	Descending bool

	// Filters has the values of the filters that the request sets, by the name of the parameter, each in a canonical
	// form. The map lacks filters that the request does not set, so a cursor stays valid when the API adds a filter to
	// the list.
	Filters map[string]string

	// Least and Most bound a record's sort key. The API refuses a cursor with a key outside. A client can make a cursor
	// with any key, and Postgres does not accept every time. The check in a cursor does not depend on Least and Most.
	Least, Most int64
}

// A cursor is the base64url of a version, a key (8 bytes), an id, and a check over these and the [Binding]. The check
// is not secret. The check keeps a client from using a cursor with another list by mistake. A client that forges a
// cursor can only start at another position of a list that the client may read anyway.
const (
	cursorVersion = 1
	checkBytes    = 16
	cursorHead    = 1 + 8
)

// Cursor returns the cursor with which a client asks for the records after p in the list of b.
func (b Binding) Cursor(p lists.Position) string {
	raw := make([]byte, cursorHead, cursorHead+len(p.ID)+checkBytes)
	raw[0] = cursorVersion
	binary.BigEndian.PutUint64(raw[1:], uint64(p.Key))
	raw = append(raw, p.ID...)
	check := b.check(raw)
	return base64.RawURLEncoding.EncodeToString(append(raw, check[:checkBytes]...))
}

// position returns the position in the parameter "cursor" of q, or start if the request has no cursor. A text
// without a [Binding.Position] is a fault of q.
func (b Binding) position(q *Query, start lists.Position) lists.Position {
	const name = "cursor"
	if !q.Has(name) {
		return start
	}
	p, ok := b.Position(q.Text(name))
	if !ok {
		q.Fail(name, "the cursor of the previous answer, with the same project, list, sort, direction and filters")
		return start
	}
	return p
}

// Position returns the position in the text of a cursor. ok is false if [Binding.Cursor] did not make the text for the
// same binding, or its key is outside Least and Most.
func (b Binding) Position(text string) (p lists.Position, ok bool) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(raw) < cursorHead+checkBytes || raw[0] != cursorVersion {
		return p, false
	}
	p = lists.Position{Key: int64(binary.BigEndian.Uint64(raw[1:])), ID: string(raw[cursorHead : len(raw)-checkBytes])}
	// Compare the text, because DecodeString ignores line breaks in a text.
	return p, text == b.Cursor(p) && p.Key >= b.Least && p.Key <= b.Most && (p.ID == "" || wire.ValidIdentifier(p.ID))
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
	text = binary.AppendUvarint(text, uint64(len(b.Filters)))
	for _, name := range slices.Sorted(maps.Keys(b.Filters)) {
		part(name)
		part(b.Filters[name])
	}
	return sha256.Sum256(append(text, body...))
}
