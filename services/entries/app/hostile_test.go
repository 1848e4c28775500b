package app

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

// TestHostileRecords sends records that are hard to store between two good ones. Each is stored and returned byte for
// byte, or rejected by its line. The good ones are stored.
func TestHostileRecords(t *testing.T) {
	t.Parallel()
	s, project, key := shared(t)
	quote := func(text string) string { b, _ := json.Marshal(text); return string(b) }
	// line returns an entry as text, with data as the JSON token of entry_data.
	line := func(id, data string) string {
		return fmt.Sprintf(`{"entry_id":%s,"group_id":"g","project_id":%s,"embeddable_id":"e","contact_id":"c","created_at":"2022-01-01T00:00:00Z","updated_at":"2022-01-01T00:00:01Z","entry_data":%s}`, quote(id), quote(project), data)
	}
	at := func(id, updated string) string {
		return strings.Replace(line(id, `"{}"`), "2022-01-01T00:00:01Z", updated, 1)
	}
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	tests := []struct {
		name, line string
		code       string // of the rejection; empty if the record is stored
		data       string // the entry_data that is returned, if it is stored
		updated    string // the updated_at that is returned
	}{
		{name: "escapes within", line: line("x", quote(`{"a":"\u0000 \ud800 \" \\ \n"}`)), data: `{"a":"\u0000 \ud800 \" \\ \n"}`},
		{name: "duplicate names within", line: line("x", quote(`{"a":1,"a":2}`)), data: `{"a":1,"a":2}`},
		{name: "white space within", line: line("x", quote(" {\n\t\"a\" : [ ] }\r\n")), data: " {\n\t\"a\" : [ ] }\r\n"},
		{name: "numbers beyond 2^53", line: line("x", quote(`[9007199254740993,1e400,-0.0,1.10]`)), data: `[9007199254740993,1e400,-0.0,1.10]`},
		{name: "a scalar", line: line("x", quote(`"text"`)), data: `"text"`},
		{name: "all of Unicode's planes", line: line("x", quote(`{"é":"`+"\u2028\U0001F600\U0010FFFF\u007f"+`"}`)), data: `{"é":"` + "\u2028\U0001F600\U0010FFFF\u007f" + `"}`},
		{name: "1 MB", line: line("x", quote(`"`+strings.Repeat("ü\\\"", 250_000)+`"`)), data: `"` + strings.Repeat("ü\\\"", 250_000) + `"`},
		{name: "10,000 deep", line: line("x", quote(deep(10_000))), data: deep(10_000)},
		{name: "escaped surrogate pair", line: line("x", `"\"\ud83d\ude00\""`), data: "\"\U0001F600\""},
		{name: "first year", line: at("x", "0001-01-01T00:00:00Z"), data: "{}", updated: "0001-01-01T00:00:00Z"},
		{name: "last year", line: at("x", "9999-12-31T23:59:59.999999Z"), data: "{}", updated: "9999-12-31T23:59:59.999999Z"},
		{name: "offset and seven digits", line: at("x", "2022-06-01T02:00:00.1234567+02:00"), data: "{}", updated: "2022-06-01T00:00:00.123456Z"},
		{name: "id of 256 bytes", line: line(strings.Repeat("é", 128), `"{}"`), data: "{}"},
		{name: "carriage return", line: line("x", `"{}"`) + "\r", data: "{}"},

		{name: "10,001 deep", line: line("x", quote(deep(10_001))), code: "invalid_field"},
		{name: "NUL", line: line("x", `"\"\u0000\""`), code: "invalid_field"},
		{name: "NUL in an id", line: strings.Replace(line("x", `"{}"`), `"x"`, `"a\u0000b"`, 1), code: "invalid_field"},
		{name: "lone surrogate", line: line("x", `"\"\ud800\""`), code: "invalid_json"},
		{name: "invalid UTF-8", line: line("x", "\"\\\"\xff\\\"\""), code: "invalid_json"},
		{name: "raw NUL byte", line: line("x", "\"\x00\""), code: "invalid_json"},
		{name: "not JSON within", line: line("x", `"{"`), code: "invalid_field"},
		{name: "empty within", line: line("x", `""`), code: "invalid_field"},
		{name: "two values within", line: line("x", `"1 2"`), code: "invalid_field"},
		{name: "NaN within", line: line("x", `"NaN"`), code: "invalid_field"},
		{name: "an object instead of text", line: line("x", `{}`), code: "invalid_field"},
		{name: "null", line: line("x", `null`), code: "invalid_field"},
		{name: "duplicate names", line: strings.Replace(line("x", `"{}"`), `"group_id":"g"`, `"group_id":"g","group_id":"h"`, 1), code: "invalid_json"},
		{name: "unknown field", line: strings.Replace(line("x", `"{}"`), `{`, `{"nope":1,`, 1), code: "unknown_field"},
		{name: "missing field", line: strings.Replace(line("x", `"{}"`), `"group_id":"g",`, ``, 1), code: "missing_field"},
		{name: "empty id", line: line("", `"{}"`), code: "invalid_field"},
		{name: "id of 257 bytes", line: line(strings.Repeat("x", 257), `"{}"`), code: "invalid_field"},
		{name: "number for an id", line: strings.Replace(line("x", `"{}"`), `"x"`, `7`, 1), code: "invalid_field"},
		{name: "year 0", line: at("x", "0000-12-31T00:00:00Z"), code: "invalid_field"},
		{name: "year 10000 by offset", line: at("x", "9999-12-31T23:59:59-01:00"), code: "invalid_field"},
		{name: "no such day", line: at("x", "2022-02-30T00:00:00Z"), code: "invalid_field"},
		{name: "an array", line: `[1]`, code: "invalid_json"},
		{name: "cut off", line: line("x", `"{}"`)[:80], code: "invalid_json"},
		{name: "two on a line", line: line("x", `"{}"`) + line("y", `"{}"`), code: "invalid_json"},
		{name: "words", line: "hello", code: "invalid_json"},
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before, after := fmt.Sprintf("before-%d", i), fmt.Sprintf("after-%d", i)
			s.Exec(t, `DELETE FROM entries WHERE project_id = $1`, project)
			in := s.Ingest(t, "entries", newEntry(project, before, time.Unix(0, 0)), tt.line, "", newEntry(project, after, time.Unix(0, 0)))
			for _, good := range []string{before, after} {
				if a := s.Get(t, key, "/projects/"+project+"/entries/"+good); a.Status != 200 {
					t.Errorf("the good line %s: %d", good, a.Status)
				}
			}
			if tt.code != "" {
				if in.Stored != 2 || in.Rejected != 1 || len(in.Rejects) != 1 || in.Rejects[0].Line != 2 || in.Rejects[0].Code != tt.code || in.Rejects[0].Message == "" {
					t.Errorf("%+v, want line 2 rejected as %s", in, tt.code)
				}
				if len(in.Rejects) == 1 && len(in.Rejects[0].Message) > 1000 {
					t.Errorf("a message of %d bytes", len(in.Rejects[0].Message))
				}
				return
			}
			if in.Stored != 3 || in.Rejected != 0 {
				t.Fatalf("%+v", in)
			}
			id := "x"
			if strings.HasPrefix(tt.name, "id of") {
				id = strings.Repeat("é", 128)
			}
			for _, path := range []string{"/entries/" + url.PathEscape(id), "/entries?limit=3&direction=ASC", "/entries?limit=3"} {
				a := s.Get(t, key, "/projects/"+project+path)
				var got object
				if strings.Contains(path, "?") {
					var list []object
					a.JSON(t, &list)
					for _, o := range list {
						if o["entry_id"] == id {
							got = o
						}
					}
				} else {
					a.JSON(t, &got)
				}
				if got["entry_data"] != tt.data {
					t.Errorf("%s: entry_data came back as %.80q", path, got["entry_data"])
				}
				if tt.updated != "" && got["updated_at"] != tt.updated {
					t.Errorf("%s: updated_at came back as %v", path, got["updated_at"])
				}
			}
		})
	}
}

// TestIngestRules checks which records may overwrite others.
func TestIngestRules(t *testing.T) {
	t.Parallel()
	s, project, key := shared(t)
	entry := func(updated int, data string) object {
		return servicetest.With(newEntry(project, "en_1", at(updated)), "entry_data", data)
	}
	stored := func() (data string) {
		var o object
		s.Get(t, key, "/projects/"+project+"/entries/en_1").JSON(t, &o)
		data, _ = o["entry_data"].(string)
		return data
	}
	for _, step := range []struct {
		name             string
		send             []any
		stored, existing int
		want             string
	}{
		{"new", []any{entry(5, "1")}, 1, 0, "1"},
		{"the same", []any{entry(5, "1")}, 0, 1, "1"},
		{"older", []any{entry(4, "2")}, 0, 1, "1"},
		{"equal, other content", []any{entry(5, "3")}, 1, 0, "3"},
		{"newer", []any{entry(6, "4")}, 1, 0, "4"},
		{"newer, same content", []any{entry(7, "4")}, 1, 0, "4"},
		{"one after the other in one body", []any{entry(8, "5"), entry(8, "5"), entry(7, "6"), entry(9, "7"), entry(9, "8")}, 3, 2, "8"},
	} {
		first := 0
		if step.name == "new" {
			first = 1
		}
		in := s.Ingest(t, "entries", step.send...)
		if in.Stored != step.stored || in.Changed != step.stored-first || in.Existing != step.existing || in.Rejected != 0 || stored() != step.want {
			t.Errorf("%s: %+v, entry_data %s; want %d stored, %d existing, %s", step.name, in, stored(), step.stored, step.existing, step.want)
		}
	}
	view := pageView(project, "en_1", 1, at(1))
	named := servicetest.With(view, "event_id", "ev_1")
	for _, step := range []struct {
		name                       string
		send                       []any
		stored, existing, rejected int
	}{
		{"new", []any{view}, 1, 0, 0},
		{"the same", []any{view, view}, 0, 2, 0},
		{"one field differs", []any{servicetest.With(view, "contact_id", "co_2"), servicetest.With(view, "url", "https://x"), servicetest.With(view, "total_pages", nil)}, 3, 0, 0},
		{"fields left out are null", []any{servicetest.With(servicetest.With(view, "total_pages", servicetest.Absent), "custom_event_name", servicetest.Absent)}, 0, 1, 0},
		{"with an id", []any{named, servicetest.With(named, "contact_id", "co_9"), servicetest.With(named, "event_id", "ev_2")}, 2, 1, 0},
		{"the same id elsewhere", []any{servicetest.With(named, "project_id", project+"_other")}, 1, 0, 0},
		{"page views leave nothing open", []any{servicetest.With(view, "page_id", nil), servicetest.With(view, "page_key", servicetest.Absent), servicetest.With(view, "page_index", nil), servicetest.With(view, "page_index", 1.5)}, 0, 0, 4},
		{"other events may", []any{servicetest.With(servicetest.With(view, "page_id", nil), "event_type", "other")}, 1, 0, 0},
	} {
		in := s.Ingest(t, "events", step.send...)
		if in.Stored != step.stored || in.Existing != step.existing || in.Rejected != step.rejected {
			t.Errorf("%s: %+v; want %d stored, %d existing, %d rejected", step.name, in, step.stored, step.existing, step.rejected)
		}
	}
	// Events may arrive before their entry, and are visible once the entry is stored.
	s.MustIngest(t, "events", pageView(project, "en_later", 1, at(1)))
	if a := s.Get(t, key, "/projects/"+project+"/entries/en_later/events"); a.Status != 404 {
		t.Errorf("events without their entry: %d", a.Status)
	}
	s.MustIngest(t, "entries", newEntry(project, "en_later", at(1)))
	if list, _ := s.List(t, key, "/projects/"+project+"/entries/en_later/events"); len(list) != 1 {
		t.Errorf("events that came before their entry: %d", len(list))
	}
}
