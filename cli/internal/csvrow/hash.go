package csvrow

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/shared/wire"
)

// Former has the entries of an embeddable whose ids end with the number of their row. Version 0.1.0 gave these to rows
// without an id. A row that is such an entry has the number in place of {#hash}, so that its entry is not stored twice.
type Former struct {
	// Total counts the entries, and Kept the rows that are among them. Example is the id of an entry.
	Total, Kept int
	Example     string
	numbers     map[string][]string // by [formerKey]
}

// Add adds an entry if its id is prefix and a number.
func (f *Former) Add(prefix string, e client.Entry) {
	number, ok := strings.CutPrefix(e.EntryID, prefix)
	if n, err := strconv.Atoi(number); !ok || err != nil || strconv.Itoa(n) != number {
		return
	}
	if e.ContactID == e.EntryID {
		e.ContactID = prefix
	}
	if f.numbers == nil {
		f.numbers, f.Example = map[string][]string{}, e.EntryID
	}
	f.Total++
	var key []byte
	for _, text := range []string{e.EmbeddableID, e.ContactID, e.CreatedAt.UTC().Format(timeForm), e.Data} {
		key = wire.AppendText(key, []byte(text))
	}
	f.numbers[string(key)] = append(f.numbers[string(key)], number)
}

// formerKey lists the fields that identify an entry in a [Former]. A hash in a field is left out.
var formerKey = []string{"embeddable_id", "contact_id", "created_at", "entry_data"}

// hash returns the value of {#hash} for the next row of the file, which hashes the embeddable and the row's cells. Their
// order and empty cells do not count. So an id stays when columns or rows are added, moved or renamed. The second of two
// equal rows has "-2" after its hash. The Mapping keeps about 50 bytes for each row.
func (m *Mapping) hash(cells []string, number int) (string, error) {
	if m.former != nil && m.former.Total > 0 {
		key, err := m.values(cells, number, formerKey...)
		if err != nil {
			return "", err
		}
		if same, n := m.former.numbers[key], m.kept[key]; n < len(same) {
			m.kept[key]++
			m.former.Kept++
			return same[n], nil
		}
	}
	text, err := m.values(cells, number, "embeddable_id")
	if err != nil {
		return "", err
	}
	all := []byte(text)
	for _, cell := range slices.Sorted(slices.Values(cells)) {
		if cell != "" {
			all = wire.AppendText(all, []byte(cell))
		}
	}
	whole := sha256.Sum256(all)
	sum := [12]byte(whole[:])
	hash := hex.EncodeToString(sum[:])
	if m.seen[sum]++; m.seen[sum] > 1 {
		hash += "-" + strconv.Itoa(m.seen[sum])
	}
	return hash, nil
}

// values returns the values of fields of a row, in JSON, without the hash in them.
func (m *Mapping) values(cells []string, number int, names ...string) (string, error) {
	var all []byte
	for _, name := range names {
		i := slices.IndexFunc(m.fields, func(s source) bool { return s.Name == name })
		var err error
		if all, err = m.appendValue(all, &m.fields[i], cells, number, ""); err != nil {
			return "", err
		}
	}
	return string(all), nil
}

// constant returns the value of a field that is the same in all rows, or "".
func (m *Mapping) constant(name string) (value string) {
	for _, s := range m.fields {
		for _, p := range s.parts {
			switch {
			case s.Name != name:
			case p.column != noColumn:
				return ""
			default:
				value += p.text
			}
		}
	}
	return value
}
