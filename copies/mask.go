package copies

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/copies/fields"
)

// Mask leaves values out of a project's records, or replaces them by hashes, before a copy gets the records. A nil Mask
// changes nothing.
type Mask struct {
	without, hash map[string]bool                 // columns
	fields        map[reflect.Type][]fields.Field // with the columns that are left out or hashed, by type of record
	keys          map[string]bool                 // of entry_data; true: the value is hashed
	secret        []byte
	text          string
}

// maskable are the records of the API that a copy may have, and [StatusChange].
var maskable = []reflect.Type{
	reflect.TypeFor[client.Entry](), reflect.TypeFor[client.ChangedEvent](), reflect.TypeFor[client.EmbeddableWithDefinition](),
	reflect.TypeFor[client.EmbeddableVersionWithDefinition](), reflect.TypeFor[client.Experiment](), reflect.TypeFor[StatusChange](),
}

// dataPrefix begins the name of a masked key of entry_data, as in entry_data.email. Other names are names of columns.
const dataPrefix = "entry_data."

// secretBytes is the least length of the secret for hashes, in bytes.
const secretBytes = 16

// needed are the columns that identify the rows of a copy. A mask must not leave out or hash a needed column.
var needed = []string{"entry_id", "event_key", "project_id", "seq", "embeddable_id", "version_number", "experiment_id", "change", "removed_at"}

// NewMask returns a mask, or nil if without and hash are empty. without names the columns to leave out, and hash those
// to hash, in every table. entry_data.KEY names a key of entry_data. A hash is the HMAC-SHA-256 of the value's JSON
// under secret, in hexadecimal digits.
//
// Errors are unknown names, columns that identify rows, a name in both lists, and hashed columns that are not text.
// With hash, a short secret is an error too.
func NewMask(without, hash []string, secret []byte) (*Mask, error) {
	if len(without) == 0 && len(hash) == 0 {
		return nil, nil
	}
	m := &Mask{map[string]bool{}, map[string]bool{}, map[reflect.Type][]fields.Field{}, map[string]bool{}, secret, ""}
	known := map[string]fields.Field{}
	for _, record := range maskable {
		for _, f := range fields.OfType(record) {
			if name := ColumnOf(f.Name); !slices.Contains(needed, name) {
				known[name] = f
			}
		}
	}
	for i, list := range [][]string{without, hash} {
		flag, columns := []string{"--without", "--hash"}[i], []map[string]bool{m.without, m.hash}[i]
		for _, name := range list {
			if key, ok := strings.CutPrefix(name, dataPrefix); ok {
				if hashed, twice := m.keys[key]; twice && hashed != (i == 1) {
					return nil, fmt.Errorf("%s is given to --without and to --hash", name)
				}
				m.keys[key] = i == 1
				continue
			}
			field, ok := known[name]
			switch {
			case slices.Contains(needed, name):
				return nil, fmt.Errorf("%s was given as %s, which the copy needs to identify its rows", flag, name)
			case !ok:
				return nil, fmt.Errorf("%s was given as %s; allowed: %s, or %sKEY", flag, name, strings.Join(slices.Sorted(maps.Keys(known)), ", "), dataPrefix)
			case i == 1 && field.Type != reflect.TypeFor[string]():
				return nil, fmt.Errorf("--hash was given as %s, which is no text; allowed there: --without", name)
			case i == 1 && m.without[name]:
				return nil, fmt.Errorf("%s is given to --without and to --hash", name)
			}
			columns[name] = true
		}
	}
	for _, record := range maskable {
		m.fields[record] = slices.DeleteFunc(fields.OfType(record), func(f fields.Field) bool { return !m.without[ColumnOf(f.Name)] && !m.hash[ColumnOf(f.Name)] })
	}
	identity := struct {
		Without []string `json:"without,omitempty"`
		Hash    []string `json:"hash,omitempty"`
		Secret  string   `json:"secret,omitempty"`
	}{slices.Compact(slices.Sorted(slices.Values(without))), slices.Compact(slices.Sorted(slices.Values(hash))), ""}
	if len(hash) > 0 {
		if len(secret) < secretBytes {
			return nil, fmt.Errorf("--hash needs a secret of at least %d bytes", secretBytes)
		}
		identity.Secret = m.sum([]byte("fingerprint"))[:16]
	}
	text, err := json.Marshal(identity)
	m.text = string(text)
	return m, err
}

// String returns a text that differs for different masks, with a fingerprint of the secret. A copy stores the text.
// The text of a nil mask is "".
func (m *Mask) String() string {
	if m == nil {
		return ""
	}
	return m.text
}

// Check returns an error if copied, the text of the mask with which a copy was made, is not the text of m. The text
// advice ends the error's message: what else the user can do.
func (m *Mask) Check(copied, advice string) error {
	if copied == m.String() {
		return nil
	}
	words := func(text string) string {
		if text == "" {
			return "nothing left out or hashed"
		}
		return text
	}
	return fmt.Errorf("the copy has %s, not %s: give --without, --hash and the secret as before, or %s", words(copied), words(m.String()), advice)
}

// Lacks reports whether the mask leaves out a column, so that the column has no values.
func (m *Mask) Lacks(column string) bool { return m != nil && m.without[column] }

// Names returns the names of the columns that the mask leaves out, sorted.
func (m *Mask) Names() []string {
	if m == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(m.without))
}

// Strip returns the JSON members of record without the columns that the mask leaves out. If the mask leaves out no
// column, Strip returns record itself. A member belongs to the column that [ColumnOf] returns for its name.
func (m *Mask) Strip(record any) (any, error) {
	if m == nil || len(m.without) == 0 {
		return record, nil
	}
	text, err := jsonv2.Marshal(record, jsonv2.FormatNilSliceAsNull(true))
	if err != nil {
		return nil, err
	}
	var members map[string]jsontext.Value
	if err := jsonv2.Unmarshal(text, &members); err != nil {
		return nil, err
	}
	for name := range members {
		if m.Lacks(ColumnOf(name)) {
			delete(members, name)
		}
	}
	return members, nil
}

// ColumnOf returns the name of the column for a member of an API record. Most columns have the member's name. The
// exceptions are definition, flow_id and experiment_id.
func ColumnOf(member string) string {
	switch member {
	case "json_string_prod", "json_string":
		return "definition"
	case "flowId":
		return "flow_id"
	case "id", "experimentId":
		return "experiment_id"
	}
	return member
}

// change masks the entry or the event of a change, in place. A removal has nothing to mask.
func (m *Mask) change(c *client.Change) {
	if c.Entry != nil {
		m.record(c.Entry)
	} else if c.Event != nil {
		m.record(c.Event)
	}
}

// record masks a record of the API, or a [StatusChange], in place. record is a pointer to the record.
func (m *Mask) record(record any) {
	if m == nil {
		return
	}
	for _, f := range m.fields[reflect.TypeOf(record).Elem()] {
		if m.without[ColumnOf(f.Name)] {
			clearField(f.Pointer(record))
		} else {
			m.hashField(f.Pointer(record))
		}
	}
	e, ok := record.(*client.Entry)
	switch {
	case !ok || m.without["entry_data"]:
	case m.hash["entry_data"]:
		e.Data = quoted(e.Data) // the hash becomes valid JSON text
	case len(m.keys) > 0:
		e.Data = m.data(e.Data)
	}
}

// clear sets the columns that the mask leaves out to zero, in a change that was read from a copy. A copy may have
// another value there than the masked feed, such as an empty text for null.
func (m *Mask) clear(c *client.Change) {
	if m == nil || c.Entry == nil && c.Event == nil {
		return
	}
	var record any = c.Entry
	if c.Event != nil {
		record = c.Event
	}
	for _, f := range m.fields[reflect.TypeOf(record).Elem()] {
		if m.without[ColumnOf(f.Name)] {
			clearField(f.Pointer(record))
		}
	}
}

// clearField sets the value at the pointer field to zero, which a copy stores as null.
func clearField(field any) {
	switch f := field.(type) {
	case *string:
		*f = ""
	case **string:
		*f = nil
	case *int64:
		*f = 0
	case **int64:
		*f = nil
	case *[]string:
		*f = nil
	case *time.Time:
		*f = time.Time{}
	case **client.ExperimentStatus:
		*f = nil
	case **client.Entry:
		*f = nil
	case **client.ChangedEvent:
		*f = nil
	}
}

// hashField replaces the text that field points to by its hash. A null stays null.
func (m *Mask) hashField(field any) {
	switch f := field.(type) {
	case *string:
		*f = m.sum([]byte(quoted(*f)))
	case **string:
		if *f != nil {
			*f = new(m.sum([]byte(quoted(**f))))
		}
	}
}

// sum returns the HMAC-SHA-256 of value under the mask's secret, in hexadecimal digits.
func (m *Mask) sum(value []byte) string {
	h := hmac.New(sha256.New, m.secret)
	h.Write(value)
	return fmt.Sprintf("%x", h.Sum(nil))
}

// quoted returns text as a JSON string that escapes only the characters that JSON requires. Invalid UTF-8 becomes
// U+FFFD.
func quoted(text string) string {
	b, _ := jsontext.AppendQuote(nil, strings.ToValidUTF8(text, "\ufffd")) // never fails for valid UTF-8
	return string(b)
}

// data returns the entry_data text with its masked keys left out or hashed, in each spelling and at each occurrence.
// The other members keep their bytes. If text is not a JSON object, data returns {}, because it cannot find the keys to
// mask.
func (m *Mask) data(text string) string {
	const nothing = "{}"
	d := jsontext.NewDecoder(strings.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if start, err := d.ReadToken(); err != nil || start.Kind() != '{' {
		return nothing
	}
	var kept []string // members with the white space around them
	from := d.InputOffset()
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return nothing
		}
		hashed, masked := m.keys[name.String()]
		value, err := d.ReadValue()
		if err != nil {
			return nothing
		}
		end := d.InputOffset()
		next := end + int64(strings.IndexAny(text[end:], ",}"))
		if next < end {
			return nothing
		}
		switch {
		case !masked:
			kept = append(kept, text[from:next])
		case hashed:
			kept = append(kept, text[from:end-int64(len(value))]+m.hashedValue(value)+text[end:next])
		}
		from = next + 1
	}
	if end, err := d.ReadToken(); err != nil || end.Kind() != '}' {
		return nothing
	}
	closed := d.InputOffset()
	if _, err := d.ReadToken(); err == nil { // more after the object
		return nothing
	}
	before := text[:strings.Index(text, "{")]
	if strings.TrimSpace(text[closed:]) != "" {
		return nothing
	}
	return before + "{" + strings.Join(kept, ",") + "}" + text[closed:]
}

// hashedValue returns the hash of a JSON value, as a JSON string. A null stays null, and a value without a canonical
// form becomes null. The hash is of the canonical form of RFC 8785, except that numbers keep their digits. So the
// spelling of a string does not change the hash.
func (m *Mask) hashedValue(value jsontext.Value) string {
	if value.Kind() == 'n' {
		return "null"
	}
	value = value.Clone()
	if err := value.Canonicalize(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true), jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)); err != nil {
		return "null"
	}
	return `"` + m.sum(value) + `"`
}
