package replicate

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/lectern-dev/lectern/client"
)

// Mask leaves values out of a project's records, or replaces them by hashes, before a copy gets the records. A nil Mask changes
// nothing.
type Mask struct {
	without, hash map[string]bool // columns
	keys          map[string]bool // of entry_data; true: the value is hashed
	secret        []byte
	text          string
}

// dataPrefix begins the name of a key of entry_data.
const dataPrefix = "entry_data."

// secretBytes is the least length of a secret.
const secretBytes = 16

// needed are the columns that identify rows of a copy.
var needed = []string{"entry_id", "event_key", "project_id", "seq", "embeddable_id", "version_number", "experiment_id", "change", "removed_at"}

// NewMask returns a mask, or nil if there is nothing to mask. without and hash name columns, each in every table that has the
// column. They name keys of entry_data as entry_data.KEY. A hash is the HMAC-SHA-256 of the value's JSON under the secret, in hex.
func NewMask(without, hash []string, secret []byte) (*Mask, error) {
	if len(without) == 0 && len(hash) == 0 {
		return nil, nil
	}
	m := &Mask{map[string]bool{}, map[string]bool{}, map[string]bool{}, secret, ""}
	known := map[string]any{}
	for _, record := range []any{&client.Entry{}, &client.ChangedEvent{}, &client.EmbeddableWithDefinition{}, &client.EmbeddableVersionWithDefinition{}, &client.Experiment{}, &StatusChange{}} {
		maps.Copy(known, fieldsOf(record))
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
			case i == 1 && !isText(field):
				return nil, fmt.Errorf("--hash was given as %s, which is no text; allowed there: --without", name)
			case i == 1 && m.without[name]:
				return nil, fmt.Errorf("%s is given to --without and to --hash", name)
			}
			columns[name] = true
		}
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

// String identifies the mask, with a fingerprint of its secret. It returns "" for nil.
func (m *Mask) String() string {
	if m == nil {
		return ""
	}
	return m.text
}

// Check returns an error if a copy was made with another mask than m. advice says what to do then.
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

// Lacks reports whether a column has no values.
func (m *Mask) Lacks(column string) bool { return m != nil && m.without[column] }

// Names returns the columns that have no values.
func (m *Mask) Names() []string {
	if m == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(m.without))
}

// Strip returns record, or its JSON without the members of columns that have no values, if there are such columns. A member may have
// the name of the API in place of that of the column.
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

// ColumnOf returns the name of the column for a member of the API's records.
func ColumnOf(member string) string {
	switch member {
	case "json_string_prod", "json_string":
		return "definition"
	case "flowId":
		return "flow_id"
	}
	return member
}

// change masks a change of the feed.
func (m *Mask) change(c *client.Change) {
	if c.Entry != nil {
		m.record(c.Entry)
	} else if c.Event != nil {
		m.record(c.Event)
	}
}

// record masks a record, which is a pointer.
func (m *Mask) record(record any) {
	if m == nil {
		return
	}
	for name, field := range fieldsOf(record) {
		if m.without[name] {
			clearField(field)
		} else if m.hash[name] {
			m.hashField(field)
		}
	}
	e, ok := record.(*client.Entry)
	switch {
	case !ok || m.without["entry_data"]:
	case m.hash["entry_data"]:
		e.Data = quoted(e.Data) // JSON again
	case len(m.keys) > 0:
		e.Data = m.data(e.Data)
	}
}

// clear leaves out the columns of a record of a copy, where null may have become another value.
func (m *Mask) clear(c *client.Change) {
	if m == nil {
		return
	}
	var record any = c.Entry
	if c.Event != nil {
		record = c.Event
	}
	for name, field := range fieldsOf(record) {
		if m.without[name] {
			clearField(field)
		}
	}
}

// fieldsOf returns the fields of a record that may be masked, by the names of their columns.
func fieldsOf(record any) map[string]any {
	switch r := record.(type) {
	case *client.Entry:
		if r == nil {
			return nil
		}
		return map[string]any{"group_id": &r.GroupID, "contact_id": &r.ContactID, "created_at": &r.CreatedAt, "updated_at": &r.UpdatedAt, "entry_data": &r.Data}
	case *client.ChangedEvent:
		return map[string]any{
			"event_id": &r.EventID, "contact_id": &r.ContactID, "group_id": &r.GroupID, "embeddable_version_number": &r.VersionNumber, "timestamp": &r.Timestamp,
			"page_id": &r.PageID, "page_key": &r.PageKey, "page_index": &r.PageIndex, "max_page_id": &r.MaxPageID, "max_page_key": &r.MaxPageKey,
			"max_page_index": &r.MaxPageIndex, "total_pages": &r.TotalPages, "event_type": &r.EventType, "view_type": &r.ViewType,
			"custom_event_name": &r.CustomEventName, "custom_event_props": &r.CustomEventProps, "url": &r.URL,
		}
	case *client.EmbeddableWithDefinition:
		return map[string]any{"title": &r.Title, "group_id": &r.GroupID, "definition": &r.Definition}
	case *client.EmbeddableVersionWithDefinition:
		return map[string]any{"saved_at": &r.SavedAt, "definition": &r.Definition}
	case *client.Experiment:
		return map[string]any{
			"flow_id": &r.FlowID, "name": &r.Name, "hypothesis": &r.Hypothesis, "impact_metrics": &r.ImpactMetrics, "no_impact_metrics": &r.NoImpactMetrics,
			"created_at": &r.CreatedAt, "updated_at": &r.UpdatedAt, "observations": &r.Observations, "outcome": &r.Outcome, "attachments": &r.Attachments,
			"variants": &r.Variants, "flow_ids": &r.FlowIDs, "paused_showing_variant": &r.PausedShowingVariant, "winner_variant": &r.WinnerVariant, "status": &r.Status,
		}
	case *StatusChange:
		return map[string]any{"status": &r.Status, "changed_at": &r.ChangedAt, "recorded_at": &r.RecordedAt}
	}
	return nil
}

// isText reports whether a field holds text.
func isText(field any) bool {
	switch field.(type) {
	case *string, **string:
		return true
	}
	return false
}

// clearField sets a field to its zero value.
func clearField(field any) {
	switch f := field.(type) {
	case *string:
		*f = ""
	case **string:
		*f = nil
	case **int64:
		*f = nil
	case *[]string:
		*f = nil
	case *time.Time:
		*f = time.Time{}
	case **client.ExperimentStatus:
		*f = nil
	}
}

// hashField replaces a text by its hash. Null stays.
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

// sum returns the HMAC of a value's JSON, in hex.
func (m *Mask) sum(value []byte) string {
	h := hmac.New(sha256.New, m.secret)
	h.Write(value)
	return fmt.Sprintf("%x", h.Sum(nil))
}

// quoted returns the JSON of a text, in which only what must be escaped is.
func quoted(text string) string {
	b, _ := jsontext.AppendQuote(nil, strings.ToValidUTF8(text, "\ufffd")) // so it never fails
	return string(b)
}

// data masks keys of entry_data, in each spelling and each time that they occur. All other bytes stay. The result is {} if the text
// is no JSON object: what cannot be read cannot be masked.
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

// hashedValue returns the JSON of a value's hash. Null stays. The form of the value is that of RFC 8785, with the digits of its numbers
// as they are. So one value has one hash, however the value is spelled.
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
