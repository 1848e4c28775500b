package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/lectern-dev/lectern/shared/ingest"
)

// note is a record with every type of field.
type note struct {
	Project string
	ID      string
	Kind    string
	At      int64
	Size    int64
	Count   *int64
	Title   *string
	Data    string
	Extra   *string
	Tags    []string
	Others  []string
}

func fields() []ingest.Field[note] {
	return []ingest.Field[note]{
		ingest.Text("id", ingest.Identifier(), func(n *note) *string { return &n.ID }),
		ingest.Text("project_id", ingest.Identifier(), func(n *note) *string { return &n.Project }),
		ingest.Text("kind", ingest.OneOf("plain", "odd"), func(n *note) *string { return &n.Kind }),
		ingest.Time("at", func(n *note) *int64 { return &n.At }),
		ingest.Int("size", 0, math.MaxInt64, func(n *note) *int64 { return &n.Size }),
		ingest.NullInt("count", math.MinInt32, math.MaxInt32, func(n *note) **int64 { return &n.Count }),
		ingest.NullText("title", ingest.AnyText(), func(n *note) **string { return &n.Title }),
		ingest.Text("data", ingest.JSONText(), func(n *note) *string { return &n.Data }),
		ingest.NullText("extra", ingest.JSONObjectText(), func(n *note) **string { return &n.Extra }),
		ingest.NullTexts("tags", ingest.AnyText(), func(n *note) *[]string { return &n.Tags }),
		ingest.NullTexts("others", ingest.Identifier(), func(n *note) *[]string { return &n.Others }),
	}
}

// noteLine returns a valid line. extra is empty, or more members after a comma.
func noteLine(project, id, extra string) string {
	return fmt.Sprintf(`{"id":%q,"project_id":%q,"kind":"plain","at":"2022-01-01T00:00:00Z","size":1,"data":"{}","tags":[]%s}`, id, project, extra)
}

// with returns a valid line, with another value of the named member.
func with(name, value string) string {
	members := []struct{ name, value string }{
		{"id", `"n1"`}, {"project_id", `"pr_1"`}, {"kind", `"plain"`}, {"at", `"2022-01-01T00:00:00Z"`},
		{"size", `1`}, {"data", `"{}"`}, {"tags", `[]`},
	}
	var b strings.Builder
	found := false
	for _, m := range members {
		if m.name == name {
			m.value, found = value, true
		}
		fmt.Fprintf(&b, ",%q:%s", m.name, m.value)
	}
	if !found {
		fmt.Fprintf(&b, ",%q:%s", name, value)
	}
	return "{" + b.String()[1:] + "}"
}

// fakeStore stores notes by project and id, as a database would. It stores a note once, even if it receives it twice.
type fakeStore struct {
	mu     sync.Mutex
	notes  map[string]note
	calls  int
	before func(call int, project string, records []note) error // may be nil
}

func (s *fakeStore) store(_ context.Context, project string, records []note) (ingest.Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.before != nil {
		if err := s.before(s.calls, project, records); err != nil {
			return ingest.Result{}, err
		}
	}
	if s.notes == nil {
		s.notes = map[string]note{}
	}
	var result ingest.Result
	for i, n := range records {
		if n.Project != project {
			return result, errors.New("a record of another project")
		}
		key := project + "/" + n.ID
		old, there := s.notes[key]
		switch {
		case there && old.Data != n.Data:
			result.Rejected = append(result.Rejected, ingest.Rejected{
				Index: i, Fault: ingest.Fault{Code: ingest.Conflict, Message: n.ID + " never changes"},
			})
			continue
		case !there:
			result.Stored++
		}
		s.notes[key] = n
	}
	return result, nil
}

func (s *fakeStore) keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var keys []string
	for k := range s.notes {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func kind(s *fakeStore) ingest.Kind[note] {
	return ingest.Kind[note]{
		Resource: "notes",
		Fields:   fields(),
		Check: func(n *note) *ingest.Fault {
			if n.Kind == "odd" && n.Title == nil {
				return ingest.Missing("title")
			}
			return nil
		},
		Project: func(n *note) string { return n.Project },
		Store:   s.store,
	}
}
