package ingest

import (
	"bytes"
	"context"
	"encoding/json"
	"hash/maphash"
)

// MostRemembered is how many records a [Dry] remembers, so that its memory is bounded. A Dry counts a record that it
// does not remember as new.
const MostRemembered = 1_000_000

// Identity says which record a line is about, and whether the line replaces an earlier line about the same record.
type Identity struct {
	ID string
	// At is when the record was updated. A line with an earlier time never replaces a line with a later time. Kinds
	// without such a time leave At 0.
	At int64
	// First keeps the first line of an ID. A later line counts as existing. If Other is not nil and the content
	// differs, a later line is rejected with Other.
	First bool
	Other *Fault
}

// Dry reads lines as a [Handler] does, but stores nothing. Dry counts the outcomes that the lines would have in an
// empty database. The import of the command line uses a Dry for a dry run.
type Dry struct {
	take func(ctx context.Context, d *Dry, body []byte) (Summary, error)
	hash maphash.Seed
	kept map[uint64]kept
	// Forgotten counts the new records that the Dry did not remember, because it already remembered [MostRemembered].
	Forgotten int64
}

// kept has the parts of a record that a Dry remembers. A Dry finds a kept by a hash of the record's project and id.
type kept struct {
	at      int64  // the time by which the newer of two records wins
	content uint64 // a hash
}

// NewDry returns a Dry for records of the kind k. NewDry does not use the Store of k, which may be nil. identity
// returns the Identity of a record.
func NewDry[T any](k Kind[T], identity func(record *T) Identity) *Dry {
	fields := newShape(k.Fields)
	return &Dry{
		hash: maphash.MakeSeed(), kept: map[uint64]kept{},
		take: func(ctx context.Context, d *Dry, body []byte) (Summary, error) {
			k.Store = func(_ context.Context, project string, records []T) (r Result, err error) {
				for i := range records {
					content, err := json.Marshal(&records[i])
					if err != nil {
						return Result{}, err
					}
					id := identity(&records[i])
					d.put(&r, i, project, id, maphash.Bytes(d.hash, content))
				}
				return r, nil
			}
			o := Options{}.withDefaults()
			in := run[T]{kind: k, options: o, parser: newParser(fields, k.Check), stopReading: func() {},
				count: newCounter(nil, k.Resource), summary: Summary{Rejects: []Reject{}}}
			return in.all(ctx, &lines{source: bytes.NewReader(body), max: o.MaxRecordBytes})
		},
	}
}

// Take counts the outcomes of the lines of body, which is NDJSON without compression. Take treats the records that
// earlier calls remembered as stored.
func (d *Dry) Take(ctx context.Context, body []byte) (Summary, error) { return d.take(ctx, d, body) }

// put adds the outcome of the record with index i to r, and remembers the record unless the Dry is full. content is a
// hash of the record.
func (d *Dry) put(r *Result, i int, project string, id Identity, content uint64) {
	key := maphash.String(d.hash, project+"\x00"+id.ID)
	old, known := d.kept[key]
	switch {
	case known && id.First:
		if id.Other != nil && content != old.content {
			r.Rejected = append(r.Rejected, Rejected{i, *id.Other})
		}
		return
	case known && (id.At < old.at || id.At == old.at && content == old.content):
		return
	case known:
		r.Changed++
	case len(d.kept) >= MostRemembered:
		d.Forgotten++
		r.Stored++
		return
	}
	r.Stored++
	d.kept[key] = kept{id.At, content}
}
