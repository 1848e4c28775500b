package entry

import (
	"crypto/sha256"
	"encoding/binary"
)

// KeyBytes is the length in bytes of an event's key, which [Event.Key] returns.
const KeyBytes = 16

// Key returns a digest that identifies the event within its project: the first half of a SHA-256 sum. The digest covers
// only the event id if there is one, and otherwise all fields except the project.
func (e *Event) Key() [KeyBytes]byte {
	b := make([]byte, 0, 512)
	text := func(s string) {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	if e.EventID != nil {
		b = append(b, 'i')
		text(*e.EventID)
		return half(b)
	}
	textOrNull := func(s *string) {
		if s == nil {
			b = append(b, 0)
			return
		}
		b = append(b, 1)
		text(*s)
	}
	intOrNull := func(n *int64) {
		if n == nil {
			b = append(b, 0)
			return
		}
		b = append(b, 1)
		b = binary.AppendVarint(b, *n)
	}
	b = append(b, 'f')
	text(e.EntryID)
	text(e.ContactID)
	text(e.GroupID)
	text(e.EmbeddableID)
	intOrNull(e.Version)
	b = binary.AppendVarint(b, e.Timestamp)
	textOrNull(e.PageID)
	textOrNull(e.PageKey)
	intOrNull(e.PageIndex)
	textOrNull(e.MaxPageID)
	textOrNull(e.MaxPageKey)
	intOrNull(e.MaxPageIndex)
	intOrNull(e.TotalPages)
	text(e.EventType)
	textOrNull(e.ViewType)
	textOrNull(e.CustomEventName)
	textOrNull(e.CustomEventProps)
	textOrNull(e.URL)
	return half(b)
}

func half(b []byte) (key [KeyBytes]byte) {
	sum := sha256.Sum256(b)
	copy(key[:], sum[:])
	return key
}
