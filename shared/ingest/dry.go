package ingest

import (
	"bytes"
	"context"
	"encoding/json"
	"hash/maphash"
)

// MostRemembered is how many records a [Dry] remembers, in about 100 MiB of memory.
const MostRemembered = 1_000_000

// Identity says which records are one, and which of them is kept.
type Identity struct {
	ID string
	// At is when the record was updated: an older one never replaces a newer one. Kinds without such a time leave it 0.
	At int64
	// First keeps the first record of an ID. Others exist already, or are rejected by Other if their content differs.
	First bool
	Other *Fault
}

// Dry takes lines as a [Handler] does, and stores nothing. It counts what would become of them in an empty database.
type Dry struct {
	take func(ctx context.Context, d *Dry, body []byte) (Summary, error)
	hash maphash.Seed
	kept map[uint64]kept
	// Forgotten counts the new records that were not remembered, because there were too many.
	Forgotten int64
}

// kept is a record that a Dry remembers. Its key is the hash of its project and id.
type kept struct {
	at      int64
	content uint64
}

// NewDry returns a Dry of a kind, whose Store is not used.
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

// Take counts what would become of the lines of body after those of earlier calls.
func (d *Dry) Take(ctx context.Context, body []byte) (Summary, error) { return d.take(ctx, d, body) }

// put counts the outcome of the record with index i.
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
