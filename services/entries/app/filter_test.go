package app

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

// TestFilterByHostileIDs filters by ids that are similar, or that have a meaning in SQL or in a URL. Each filter finds
// exactly its own entries, page by page.
func TestFilterByHostileIDs(t *testing.T) {
	t.Parallel()
	s, project, key := shared(t)
	names := []string{
		"a", "A", "a ", " a", "%", "_", "*", "%00", "null", "NULL", "0", "''", `"`, `\`, "$1", "a&b=c", "a+b", "a b", "a,b", "a/b", "?", "#", ";",
		"' OR '1'='1", "'; DROP TABLE entries; --", "é", "e\u0301", "\u202e", "\U0001F600", "\t\n", "\x01", strings.Repeat("x", 256), strings.Repeat("x", 255),
	}
	var all []any
	for i, id := range names {
		for j := range 2 {
			e := newEntry(project, fmt.Sprintf("en_%d_%d", i, j), at(j))
			e["embeddable_id"], e["contact_id"], e["group_id"] = id, id, id
			all = append(all, e, servicetest.With(e, "project_id", project+"_other"))
		}
	}
	s.MustIngest(t, "entries", all...)
	for i, id := range names {
		want := []string{fmt.Sprintf("en_%d_1", i), fmt.Sprintf("en_%d_0", i)}
		for _, filter := range []string{"embeddable_id", "contact_id", "group_id"} {
			for _, list := range []string{"entries", "entries-page-views"} {
				path := "/projects/" + project + "/" + list + "?limit=1&" + filter + "=" + url.QueryEscape(id)
				found := s.Walk(t, key, path, nil)
				if diff := cmp.Diff(want, servicetest.Column(found, "entry_id")); diff != "" {
					t.Errorf("%s: %s", path, diff)
				}
				if slices.ContainsFunc(found, func(o object) bool { return o["project_id"] != project }) {
					t.Errorf("%s: entries of another project", path)
				}
			}
		}
	}
}

// TestFilterByCompletion checks that completed selects by page views of the last page, together with other filters, and as
// the insights count.
func TestFilterByCompletion(t *testing.T) {
	t.Parallel()
	s, project, key := shared(t)
	for i, id := range []string{"none", "started", "done", "done_first", "open", "other", "done_late"} {
		s.MustIngest(t, "entries", servicetest.With(newEntry(project, id, at(i)), "contact_id", "co_"+id[:2]))
	}
	s.MustIngest(t, "entries", newEntry(project+"_other", "other", at(1)))
	s.MustIngest(t, "events",
		pageView(project, "started", 8, at(1)),
		pageView(project, "done", 9, at(1)), pageView(project, "done", 0, at(2)),
		servicetest.With(pageView(project, "done_first", 1, at(1)), "total_pages", 2), pageView(project, "done_first", 3, at(2)),
		servicetest.With(pageView(project, "open", 9, at(1)), "total_pages", nil),
		pageView(project+"_other", "other", 9, at(1)))
	lists := func(t *testing.T, query string, want ...string) {
		t.Helper()
		for _, list := range []string{"entries", "entries-page-views"} {
			path := "/projects/" + project + "/" + list + "?limit=1&" + query
			if diff := cmp.Diff(want, servicetest.Column(s.Walk(t, key, path, nil), "entry_id")); diff != "" {
				t.Errorf("%s: %s", path, diff)
			}
		}
	}
	lists(t, "completed=true", "done_first", "done")
	lists(t, "completed=false", "done_late", "other", "open", "started", "none")
	lists(t, "completed=false&direction=asc&updated_after=2022-01-01T00:00:04Z", "other", "done_late")
	lists(t, "completed=false&contact_id=co_do", "done_late")
	s.CheckRepresentation(t, key, "/projects/"+project+"/entries?completed=true", "/projects/"+project+"/entries-page-views?completed=false")

	// A page view changes what the list has, though not the entry.
	path := "/projects/" + project + "/entries?sort=created_at&completed=true"
	before := s.Get(t, key, path).Header.Get("ETag")
	s.MustIngest(t, "events", pageView(project, "done_late", 9, at(3)))
	lists(t, "completed=true", "done_late", "done_first", "done")
	if list, a := s.List(t, key, path); len(list) != 3 || a.Header.Get("ETag") == before {
		t.Errorf("%d entries, with the tag %s as before", len(list), before)
	}
	counts, _ := s.List(t, key, "/projects/"+project+"/entries-counts?interval=all")
	if len(counts) != 1 || fmt.Sprint(counts[0]["completed"]) != "3" {
		t.Errorf("the insights count %v", counts)
	}
}

// TestFilterByProgress checks that version and furthest_page select by page views, as the funnel counts, and that completed is
// then about the views of that version.
func TestFilterByProgress(t *testing.T) {
	t.Parallel()
	s, project, key := shared(t)
	for i, id := range []string{"none", "one", "both", "two", "unversioned"} {
		s.MustIngest(t, "entries", newEntry(project, id, at(i)))
	}
	view := func(id string, version any, page, second int) object {
		return servicetest.With(pageView(project, id, page, at(second)), "embeddable_version_number", version)
	}
	s.MustIngest(t, "events",
		view("one", 1, 0, 1), view("one", 1, 3, 2), view("one", 1, 2, 3),
		view("both", 1, 9, 1), view("both", 2, 3, 2),
		view("two", 2, 3, 1), view("unversioned", nil, 3, 1))
	for query, want := range map[string][]string{
		"version=1":                                              {"both", "one"},
		"version=2&direction=asc":                                {"both", "two"},
		"version=3":                                              nil,
		"version=1&completed=true":                               {"both"},
		"version=2&completed=true":                               nil,
		"version=2&completed=false":                              {"two", "both"},
		"embeddable_id=emb_1&furthest_page=3":                    {"unversioned", "two", "one"},
		"embeddable_id=emb_1&furthest_page=9":                    {"both"},
		"embeddable_id=emb_1&furthest_page=3&version=2":          {"two", "both"},
		"embeddable_id=emb_1&furthest_page=3&completed=false":    {"unversioned", "two", "one"},
		"embeddable_id=emb_2&furthest_page=3":                    nil,
		"embeddable_id=emb_1&furthest_page=-9223372036854775808": nil,
	} {
		for _, list := range []string{"entries", "entries-page-views"} {
			path := "/projects/" + project + "/" + list + "?limit=1&" + query
			if diff := cmp.Diff(want, servicetest.Column(s.Walk(t, key, path, nil), "entry_id"), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: %s", path, diff)
			}
			s.CheckRepresentation(t, key, path)
		}
	}
	for _, list := range []string{"entries", "entries-page-views"} {
		for query, parameter := range map[string]string{"furthest_page=3": "embeddable_id", "version=x": "version"} {
			if a := s.Get(t, key, "/projects/"+project+"/"+list+"?"+query); a.Status != 400 || !strings.Contains(string(a.Body), `"parameter":"`+parameter+`"`) {
				t.Errorf("%s by %s: %d %s", list, query, a.Status, a.Body)
			}
		}
	}
}

// TestFilterByAnswers checks what answer, answer_key and search select, and that neither the log nor an error has them.
func TestFilterByAnswers(t *testing.T) {
	t.Parallel()
	s := start(t, map[string]string{"LOG_LEVEL": "debug", "STATEMENT_TIMEOUT": "1s"})
	key := s.Keys.Key(project)
	for i, data := range []string{
		`{"q":"Yes","n":100,"e":"Zo\u00eb@Example.com"}`, `{"q":["Yes","No"],"n":"100"}`, `{"other":"Yes","n":1e2}`, `{"q":"\u0059es","deep":{"q":"No"}}`,
		`"Yes"`, `{"q":"\u0000Yes"}`, `{"q":true,"l":[[1],{"a":1}],"k":"50% of a_b (c)"}`, `["Yes"]`, `{"q":"Y\"es","n":123456789012345678}`,
		`{"id":"550e8400","path":"\\u0000","e":"1e99999"}`,
	} {
		s.MustIngest(t, "entries", servicetest.With(newEntry(project, fmt.Sprint(i), at(i)), "entry_data", data))
	}
	const path = "/projects/" + project + "/entries?direction=asc&limit=1"
	for query, want := range map[string]string{
		`answer="Yes"`: "0 1 2 3", `answer="Yes"&answer_key=q`: "0 1 3", `answer= "\u0059es" &answer_key=other`: "2", `answer="No"`: "1",
		`answer=100`: "0 2", `answer="100"`: "1", `answer=true`: "6", `answer=[1]`: "6", `answer={"a":1}`: "6", `answer=["Yes","No"]`: "1",
		`answer="Y\"es"`: "8", `answer=123456789012345678`: "8", `answer=123456789012345680`: "",
		`answer="550e8400"`: "9", `answer="\\u0000"`: "9", `answer={"1e99999":1}`: "",
		`search=yes`: "0 1 2 3", `search=ZOË@`: "0", `search=345678`: "8", `search=100`: "0 1 2", `search=50% o`: "6", `search=50_ o`: "", `search=ex  YES`: "0", `search=yes co_`: "0 1 2 3", `search=a_b (c)`: "6", `search=y"e`: "8",
		`search=yes&answer=100&embeddable_id=emb_1`: "0 2",
	} {
		values := url.Values{}
		for pair := range strings.SplitSeq(query, "&") {
			name, value, _ := strings.Cut(pair, "=")
			values.Set(name, value)
		}
		found := servicetest.Column(s.Walk(t, key, path+"&"+values.Encode(), nil), "entry_id")
		if got := strings.Join(found, " "); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	for query, parameter := range map[string]string{
		"answer=": "answer", "answer=Yes": "answer", "answer=1+2": "answer", "answer=%22%5Cu0000%22": "answer", "answer=1e99999": "answer", "answer=[%22%22,1e99999]": "answer", "answer=%22%5C%5C%5Cu0000%22": "answer", "answer_key=q": "answer",
		"search=ab++": "search", "search=+++": "search", "search=abc%00": "search",
	} {
		if a := s.Get(t, key, path+"&"+query); a.Status != 400 || !strings.Contains(string(a.Body), `"parameter":"`+parameter+`"`) {
			t.Errorf("%s: %d %s", query, a.Status, a.Body)
		}
	}
	lock(t, s, "entries")
	if a := s.Get(t, key, path+"&search="+canary); a.Status != 422 || !strings.Contains(string(a.Body), "question_too_large") {
		t.Errorf("a search that takes too long: %d %s", a.Status, a.Body)
	}
	if log := s.Log(); strings.Contains(log, canary) {
		t.Errorf("the log has the search: %s", log)
	}
}

// TestSearchByWords compares searches for random words with what Go finds in the same entries.
func TestSearchByWords(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	key := s.Keys.Key(project)
	random := rand.New(rand.NewPCG(61, 4))
	pick := func(from []string) string { return from[random.IntN(len(from))] }
	answers := []string{
		"Søren", "SØREN O'Brien", "Priya", "Quinn", "ada@Example.com", "+1 555 0188", "(555) 018-8", "5550188", "555.0188", "1 e3", "a\nb \"c\"", "C:\\temp", "50%", "a_b", "", "Straße",
	}
	numbers := []string{"5550188", "5.550188e6", "1e3", "-12.50", "0"}
	queries := []string{
		"søren", "Sø", "o'brien", "priya", "QUINN", "ada@example.com", "example", "5550188", "+1555", "0188", "555", "000", "-12.5", "1e3", "b", `"c"`, `c:\`, "%", "a_", "STRASSE", "straße", "en_1", "co_", "7", "emb", "hidden", "]", "x",
	}
	var stored []object
	for i := range 60 {
		data := object{"name": pick(answers), "list": []any{pick(answers), json.Number(pick(numbers))}, "deep": object{"hidden": "hidden"}, "n": json.Number(pick(numbers))}
		text, err := json.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		escape := []string{"ø", "\\u00f8"}[i%2]
		e := servicetest.With(newEntry(project, fmt.Sprint("en_", i), at(i)), "entry_data", strings.NewReplacer("ø", escape, "ß", "\\u00df").Replace(string(text)))
		s.MustIngest(t, "entries", e)
		stored = append(stored, e)
	}
	for range 150 {
		words := []string{pick(queries), pick(queries), pick(queries)}[random.IntN(3):]
		text := strings.Join(words, " ")
		if len([]rune(text)) < 3 {
			continue
		}
		var want []string
		for _, e := range stored {
			if !slices.ContainsFunc(words, func(word string) bool { return !hasWord(t, e, word) }) {
				want = append(want, e["entry_id"].(string))
			}
		}
		found := servicetest.Column(s.Walk(t, key, "/projects/"+project+"/entries?direction=asc&limit=100&search="+url.QueryEscape(text), nil), "entry_id")
		if diff := cmp.Diff(want, found, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("search for %q (-want +got):\n%s", text, diff)
		}
	}
}

// hasWord reports whether an entry has a word in its ids or its answers.
func hasWord(t *testing.T, e object, word string) bool {
	t.Helper()
	var data struct {
		Name string
		List []any
		N    float64
	}
	if err := json.Unmarshal([]byte(e["entry_data"].(string)), &data); err != nil {
		t.Fatal(err)
	}
	joined := regexp.MustCompile(`([0-9])[-() ]+([0-9])`)
	word = strings.ToLower(word)
	for _, in := range append([]any{e["entry_id"], e["contact_id"], e["group_id"], e["embeddable_id"], data.Name, data.N}, data.List...) {
		if n, ok := in.(float64); ok {
			in = strconv.FormatFloat(n, 'f', -1, 64)
			if n == -12.5 {
				in = "-12.50" // a number keeps its digits
			}
		}
		text := strings.ToLower(in.(string))
		if strings.Trim(strings.TrimPrefix(word, "+"), "0123456789") == "" {
			for joined.MatchString(text) {
				text = joined.ReplaceAllString(text, "$1$2")
			}
		}
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}
