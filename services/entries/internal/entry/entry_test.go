package entry

import (
	"reflect"
	"testing"

	"github.com/lectern-dev/lectern/shared/postgres/lists"
	"github.com/lectern-dev/lectern/shared/wire"
)

// TestKey checks that the key of an event covers each field, and tells null from empty. An event id alone is the key.
func TestKey(t *testing.T) {
	base := Event{EntryID: "en", EventType: "x"}
	seen := map[[KeyBytes]byte]string{base.Key(): "the event without changes"}
	differs := func(name string, e Event) {
		t.Helper()
		if other := seen[e.Key()]; other != "" {
			t.Errorf("%s has the key of %s", name, other)
		}
		seen[e.Key()] = name
	}
	empty, zero := "", int64(0)
	for i := range reflect.TypeFor[Event]().NumField() {
		field := reflect.TypeFor[Event]().Field(i)
		e := base
		v := reflect.ValueOf(&e).Elem().Field(i)
		switch v.Interface().(type) {
		case string:
			v.SetString("other")
		case int64:
			v.SetInt(7)
		case *string:
			v.Set(reflect.ValueOf(&empty))
		case *int64:
			v.Set(reflect.ValueOf(&zero))
		}
		if field.Name == "ProjectID" { // keys are of one project
			if e.Key() != base.Key() {
				t.Error("the project changes the key")
			}
			continue
		}
		differs(field.Name, e)
	}
	differs("a text that moves to the next field", Event{EntryID: "e", ContactID: "n", EventType: "x"})
	id := "1"
	named, same := Event{EntryID: "en", EventID: &id}, Event{EntryID: "other", EventID: &id}
	if named.Key() != same.Key() {
		t.Error("two events with one id have two keys")
	}
}

func TestBounds(t *testing.T) {
	open, bounded := List{}, List{}
	for f := range Filters(ListEntries) {
		value, ok := map[string]int64{"updated_after": 10, "updated_before": 20, "created_after": 30, "created_before": 40}[f.Parameter]
		if ok {
			bounded.Conditions = append(bounded.Conditions, Condition{f, value})
		}
	}
	at := func(key int64) lists.Position { return lists.Position{Key: key} }
	for _, tt := range []struct {
		name       string
		list       List
		sort       Sort
		start, end int64 // ascending
		moves      [2]bool
	}{
		{"no bound", open, ByUpdatedAt, wire.BeforeAll, wire.AfterAll, [2]bool{true, false}},
		{"by update", bounded, ByUpdatedAt, 11, 20, [2]bool{true, false}},
		{"by creation", bounded, ByCreatedAt, 31, 40, [2]bool{true, true}},
	} {
		l := tt.list
		l.Sort = tt.sort
		if start, end := l.Bounds(); start != at(tt.start) || end != at(tt.end) || l.Moves() != tt.moves[0] {
			t.Errorf("%s, ascending: %v to %v, moves %v", tt.name, start, end, l.Moves())
		}
		l.Descending = true
		if start, end := l.Bounds(); start != at(tt.end) || end != at(tt.start) || l.Moves() != tt.moves[1] {
			t.Errorf("%s, descending: %v to %v, moves %v", tt.name, start, end, l.Moves())
		}
	}
}

func TestArrival(t *testing.T) {
	for id, want := range map[string]struct {
		arrival int64
		valid   bool
	}{"": {0, true}, "7": {7, true}, "0": {0, false}, "-1": {-1, false}, "x": {0, false}, "99999999999999999999": {1<<63 - 1, false}} {
		p := lists.Position{ID: id}
		if Arrival(p) != want.arrival || ValidArrival(p) != want.valid {
			t.Errorf("%q: %d, %v", id, Arrival(p), ValidArrival(p))
		}
	}
}
