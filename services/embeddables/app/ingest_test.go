package app

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

// long returns a definition of n bytes, with characters of all lengths at every position.
func long(n int) string {
	const begin, pattern, end = `{"é":"`, "aé€\U0001F600 \\\"x", `"}`
	rest := n - len(begin) - len(end)
	return begin + strings.Repeat(pattern, rest/len(pattern)) + strings.Repeat("y", rest%len(pattern)) + end
}

func definitionOf(t *testing.T, s *servicetest.Service, project, key, path, field string) string {
	t.Helper()
	a := s.Get(t, key, "/projects/"+project+"/embeddables/"+path)
	if a.Status != 200 || a.Err != nil {
		t.Fatalf("%s: %d %.200s %v", path, a.Status, a.Body, a.Err)
	}
	var o object
	a.JSON(t, &o)
	text, _ := o[field].(string)
	return text
}

// TestDefinitionsOfAnyLength checks that definitions are returned byte for byte, with lengths around each limit at
// which they are split.
func TestDefinitionsOfAnyLength(t *testing.T) {
	t.Parallel()
	s, project, key := shared(t)
	const part = 256 << 10
	for i, n := range []int{40, part - 1, part, part + 1, 2*part + 5, 4*part - 2, 4 * part, 4*part + 1, 8 * part, 8*part + 3, 12 << 20} {
		want := long(n)
		if len(want) != n || !json.Valid([]byte(want)) {
			t.Fatalf("the definition of %d bytes has %d", n, len(want))
		}
		e := servicetest.With(newEmbeddable(project, "emb_1"), "json_string_prod", want)
		v := servicetest.With(newVersion(project, "emb_1", i), "json_string", want)
		for again := range 2 {
			if again == 1 && n > 8*part+3 {
				break // the other lengths are sent twice
			}
			if one, many := s.MustIngest(t, "embeddables", e), s.MustIngest(t, "embeddable-versions", v); again == 1 && one.Stored+many.Stored != 0 {
				t.Errorf("%d bytes sent again are stored: %+v, %+v", n, one, many)
			}
		}
		if got := definitionOf(t, s, project, key, "emb_1", "json_string_prod"); got != want {
			t.Errorf("%d bytes: json_string_prod comes back as %d bytes", n, len(got))
		}
		if got := definitionOf(t, s, project, key, fmt.Sprintf("emb_1/versions/%d", i), "json_string"); got != want {
			t.Errorf("%d bytes: json_string comes back as %d bytes", n, len(got))
		}
	}
}

// TestOneContentIsStoredOnce checks that a project stores each content once, even if several records have it.
func TestOneContentIsStoredOnce(t *testing.T) {
	t.Parallel()
	s, project, _ := shared(t)
	content := long(600 << 10)
	for i := range 5 {
		id := fmt.Sprintf("emb_%d", i)
		s.MustIngest(t, "embeddables", servicetest.With(newEmbeddable(project, id), "json_string_prod", content))
		s.MustIngest(t, "embeddable-versions", servicetest.With(newVersion(project, id, 1), "json_string", content),
			servicetest.With(newVersion(project, id, 2), "json_string", content))
	}
	s.Exec(t, `SELECT 1 / (count(*) = 3)::int FROM definitions WHERE project_id = $1`, project) // divides by zero unless there are three parts
}

func TestIngestRules(t *testing.T) {
	t.Parallel()
	s, project, key := shared(t)
	e := func(title string) object { return servicetest.With(newEmbeddable(project, "emb_1"), "title", title) }
	for _, step := range []struct {
		name             string
		send             []any
		stored, existing int
		want             string // the title that is stored afterwards
	}{
		{"new", []any{e("1")}, 1, 0, "1"},
		{"the same", []any{e("1")}, 0, 1, "1"},
		{"the last wins", []any{e("2")}, 1, 0, "2"},
		{"and an earlier one too when it is sent last", []any{e("1")}, 1, 0, "1"},
		{"one after the other in one body", []any{e("1"), e("3"), e("3"), e("1"), e("4")}, 3, 2, "4"},
		{"another definition", []any{servicetest.With(e("4"), "json_string_prod", "[]")}, 1, 0, "4"},
	} {
		first := 0
		if step.name == "new" {
			first = 1
		}
		in := s.Ingest(t, "embeddables", step.send...)
		list, _ := s.List(t, key, "/projects/"+project+"/embeddables")
		if in.Stored != step.stored || in.Changed != step.stored-first || in.Existing != step.existing || in.Rejected != 0 || len(list) != 1 || list[0]["title"] != step.want {
			t.Errorf("%s: %+v, %v; want %d stored, %d existing, title %s", step.name, in, list, step.stored, step.existing, step.want)
		}
	}
	v := func(number int, content string) object {
		return servicetest.With(newVersion(project, "emb_1", number), "json_string", content)
	}
	for _, step := range []struct {
		name             string
		send             []any
		stored, existing int
		conflicts        []int // rejected lines
	}{
		{"new", []any{v(1, "1"), v(2, "2")}, 2, 0, nil},
		{"the same", []any{v(1, "1"), v(2, "2")}, 0, 2, nil},
		{"other content between good ones", []any{v(3, "3"), v(1, `"other"`), v(4, "4"), v(2, "2")}, 2, 1, []int{2}},
		{"another time", []any{servicetest.With(v(1, "1"), "saved_at", "2022-02-02T00:00:00Z")}, 0, 0, []int{1}},
		{"the first of a number stays", []any{v(5, "5"), v(5, `"other"`), v(5, "5"), v(6, "6")}, 2, 1, []int{2}},
		{"of projects mixed", []any{v(1, "7"), servicetest.With(v(1, "7"), "project_id", project+"_other"), v(2, "7"), servicetest.With(v(1, "8"), "project_id", project+"_other")}, 1, 0, []int{1, 3, 4}},
		{"the same instant told otherwise", []any{servicetest.With(v(1, "1"), "saved_at", "2022-01-01T02:00:01.000+02:00")}, 0, 1, nil},
	} {
		in := s.Ingest(t, "embeddable-versions", step.send...)
		var lines []int
		for _, r := range in.Rejects {
			lines = append(lines, r.Line)
			if r.Code != "conflict" || r.Message == "" {
				t.Errorf("%s: %+v", step.name, r)
			}
		}
		if in.Stored != step.stored || in.Existing != step.existing || in.Rejected != len(step.conflicts) || fmt.Sprint(lines) != fmt.Sprint(step.conflicts) {
			t.Errorf("%s: %+v; want %d stored, %d existing, conflicts %v", step.name, in, step.stored, step.existing, step.conflicts)
		}
	}
	for number, want := range map[int]string{1: "1", 2: "2", 3: "3", 4: "4", 5: "5", 6: "6"} {
		if got := definitionOf(t, s, project, key, fmt.Sprintf("emb_1/versions/%d", number), "json_string"); got != want {
			t.Errorf("version %d is %q", number, got)
		}
	}
	// The rejected record stored no definition. Otherwise this divides by zero.
	s.Exec(t, `SELECT 1 / (count(*) = 0)::int FROM definitions WHERE project_id = $1 AND content = '"other"'`, project)
}

// TestVersionsBeforeTheirEmbeddable checks that versions may arrive before their embeddable, and are visible once it is
// stored.
func TestVersionsBeforeTheirEmbeddable(t *testing.T) {
	t.Parallel()
	s, project, key := shared(t)
	s.MustIngest(t, "embeddable-versions", newVersion(project, "emb_later", 1))
	for _, path := range []string{"/versions", "/versions/1"} {
		if a := s.Get(t, key, "/projects/"+project+"/embeddables/emb_later"+path); a.Status != 404 {
			t.Errorf("%s before the embeddable: %d", path, a.Status)
		}
	}
	s.MustIngest(t, "embeddables", newEmbeddable(project, "emb_later"))
	if list, _ := s.List(t, key, "/projects/"+project+"/embeddables/emb_later/versions"); len(list) != 1 {
		t.Errorf("versions that came before their embeddable: %v", list)
	}
	if got := definitionOf(t, s, project, key, "emb_later/versions/1", "json_string"); got != `{"flow":"emb_later","version":1}` {
		t.Errorf("its definition: %s", got)
	}
}

// TestHostileRecords sends records that are hard to store between two good ones. Each is stored and returned byte for
// byte, or rejected by its line. The good ones are stored.
func TestHostileRecords(t *testing.T) {
	t.Parallel()
	s, project, key := shared(t)
	quote := func(text string) string { b, _ := json.Marshal(text); return string(b) }
	e := func(data string) string {
		return fmt.Sprintf(`{"embeddable_id":"x","title":"t","group_id":"g","project_id":"`+project+`","json_string_prod":%s}`, data)
	}
	v := func(number, data string) string {
		return fmt.Sprintf(`{"embeddable_id":"x","project_id":"`+project+`","version_number":%s,"saved_at":"2022-01-01T00:00:00Z","json_string":%s}`, number, data)
	}
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, tt := range []struct {
		name, resource, line string
		code                 string // of the rejection; empty if the record is stored
		want                 string // the definition that is returned
	}{
		{"escapes within", "embeddables", e(quote(`{"a":"\u0000 \ud800 \" \\ \n"}`)), "", `{"a":"\u0000 \ud800 \" \\ \n"}`},
		{"duplicate names and white space", "embeddables", e(quote(" {\"a\":1,\n\t\"a\":2} ")), "", " {\"a\":1,\n\t\"a\":2} "},
		{"numbers beyond 2^53", "embeddable-versions", v("1", quote(`[9007199254740993,1e400]`)), "", `[9007199254740993,1e400]`},
		{"10,000 deep", "embeddables", e(quote(deep(10_000))), "", deep(10_000)},
		{"all of Unicode's planes", "embeddables", e(quote(`"` + "é\u2028\U0001F600\U0010FFFF\u007f" + `"`)), "", `"` + "é\u2028\U0001F600\U0010FFFF\u007f" + `"`},
		{"the greatest number", "embeddable-versions", v("9007199254740991", `"{}"`), "", "{}"},

		{"a number too great", "embeddable-versions", v("9007199254740992", `"{}"`), "invalid_field", ""},
		{"a negative number", "embeddable-versions", v("-1", `"{}"`), "invalid_field", ""},
		{"a fraction", "embeddable-versions", v("1.5", `"{}"`), "invalid_field", ""},
		{"a number as text", "embeddable-versions", v(`"1"`, `"{}"`), "invalid_field", ""},
		{"an object instead of text", "embeddables", e(`{}`), "invalid_field", ""},
		{"over MAX_RECORD_BYTES", "embeddables", e(`"` + strings.Repeat(" ", 16<<20) + `1"`), "record_too_large", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, table := range []string{"embeddables", "versions", "definitions"} {
				s.Exec(t, `DELETE FROM `+table+` WHERE project_id = $1`, project)
			}
			s.MustIngest(t, "embeddables", newEmbeddable(project, "x"))
			before, after := any(newEmbeddable(project, "before")), any(newEmbeddable(project, "after"))
			path, field := "x", "json_string_prod"
			if tt.resource == "embeddable-versions" {
				before, after = newVersion(project, "before", 1), newVersion(project, "after", 1)
				var o struct {
					Number json.Number `json:"version_number"`
				}
				_ = json.Unmarshal([]byte(tt.line), &o) // a rejected record may have no version_number
				path, field = "x/versions/"+o.Number.String(), "json_string"
			}
			in := s.Ingest(t, tt.resource, before, tt.line, "", after)
			if tt.code != "" {
				if in.Stored != 2 || in.Rejected != 1 || len(in.Rejects) != 1 || in.Rejects[0].Line != 2 || in.Rejects[0].Code != tt.code || len(in.Rejects[0].Message) > 1000 {
					t.Errorf("%+v, want line 2 rejected as %s", in, tt.code)
				}
				return
			}
			if in.Stored != 3 || in.Rejected != 0 {
				t.Fatalf("%+v", in)
			}
			if got := definitionOf(t, s, project, key, path, field); got != tt.want {
				t.Errorf("the definition came back as %.80q", got)
			}
		})
	}
}

// TestConcurrentIngest sends the same records in many orders at once. All requests succeed, and each record is stored
// once.
func TestConcurrentIngest(t *testing.T) {
	t.Parallel()
	s, project, key := shared(t)
	const records, senders = 40, 6
	stored := make([]int, senders)
	var all sync.WaitGroup
	for i := range senders {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 1))
			var embeddables, versions []any
			for _, n := range random.Perm(records) {
				id := fmt.Sprintf("emb_%02d", n)
				embeddables = append(embeddables, newEmbeddable(project, id))
				versions = append(versions, newVersion(project, id, 1), newVersion(project, id, 2))
			}
			in := s.Ingest(t, "embeddable-versions", versions...)
			stored[i] = in.Stored + s.Ingest(t, "embeddables", embeddables...).Stored
			if in.Rejected != 0 {
				t.Errorf("%+v", in)
			}
		})
	}
	all.Wait()
	total := 0
	for _, n := range stored {
		total += n
	}
	if list, _ := s.List(t, key, "/projects/"+project+"/embeddables"); len(list) != records || total != 3*records {
		t.Errorf("%d embeddables, %d stored in all", len(list), total)
	}
}

func TestIngestKeys(t *testing.T) {
	t.Parallel()
	s, _, key := demo(t)
	for _, path := range []string{"/internal/embeddables", "/internal/embeddable-versions"} {
		for _, k := range []string{"", key, "nonsense", servicetest.InternalKey} {
			a := s.DoInternal(t, servicetest.Request{Method: "POST", Path: path, Key: k, Body: strings.NewReader("{}")})
			if a.Status != 401 || !strings.Contains(string(a.Body), `"projectId":null`) {
				t.Errorf("%s with key %q: %d %s", path, k, a.Status, a.Body)
			}
		}
	}
}
