package app

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/big"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lectern-dev/lectern/shared/testing/needs"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

// TestInsights asks random questions about random records, which come late, repeated, removed and with wrong clocks. Each
// answer must equal what a naive computation over the lists finds.
func TestInsights(t *testing.T) {
	t.Parallel()
	checkInsights(t, 1, 60, 4)
}

// TestLongInsights does the same with more questions.
func TestLongInsights(t *testing.T) {
	needs.Long(t)
	checkInsights(t, uint64(time.Now().UnixNano()), 400, 8)
}

func checkInsights(t *testing.T, seed uint64, questions, rounds int) {
	s := start(t, nil)
	key := s.Keys.Key(project)
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	for round := range rounds {
		changeRecords(t, s, random, round > 0)
		m := readModel(t, s, key)
		for range questions / rounds {
			path, want := m.ask(random)
			a := s.Get(t, key, path)
			if a.Status != 200 {
				t.Fatalf("%s: %d %s", path, a.Status, a.Body)
			}
			var got any
			a.JSON(t, &got)
			if diff := cmp.Diff(plain(t, want), got, cmpopts.EquateApprox(1e-9, 1e-9)); diff != "" {
				t.Fatalf("%s (-computed +answered):\n%s", path, diff)
			}
			if again := s.Do(t, servicetest.Request{Path: path, Key: key, Headers: map[string]string{"If-None-Match": a.Header.Get("Etag")}}); again.Status != 304 {
				t.Fatalf("%s asked again: %d", path, again.Status)
			}
		}
	}
}

// plain returns v as a decoder of JSON would return it.
func plain(t testing.TB, v any) (out any) {
	t.Helper()
	b, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// changeRecords stores random records in random order, some of them again, and removes some. Postgres can parse the data of
// all entries unless unreadable.
func changeRecords(t *testing.T, s *servicetest.Service, random *rand.Rand, unreadable bool) {
	when := func() time.Time {
		switch random.IntN(20) {
		case 0:
			return time.Date([]int{1, 1969, 1999, 2101, 9999}[random.IntN(5)], 1, 1, 0, 0, 0, 0, time.UTC)
		case 1: // when clocks change somewhere
			return time.Date(2021, []time.Month{3, 10}[random.IntN(2)], 28+random.IntN(4), random.IntN(24), random.IntN(60), 0, 0, time.UTC)
		}
		return time.Date(2021, time.Month(1+random.IntN(14)), random.IntN(28), random.IntN(24), random.IntN(60), random.IntN(60), random.IntN(1e6)*1e3, time.UTC)
	}
	id := func() string { return fmt.Sprintf("en_%d", random.IntN(150)) }
	data := func() string {
		n := random.IntN(90)
		as := func(text string) json.RawMessage { return json.RawMessage(text) } // as a source writes it
		forms := []any{
			object{"n": n, "free": fmt.Sprintf("f%d", n)}, object{"n": float64(n) + 0.5, "country": "DE", "list": []int{1, 2}},
			object{"country": "FR", "n": fmt.Sprint(n)}, object{"n": as("1e2"), "z": nil, "o": object{"a": n}}, []int{n},
			object{"text": as(`"\u00e9"`), "flag": true, "n": -n}, fmt.Sprint(n),
			as(fmt.Sprintf(`{"n":"first","n":%d.0,"free":"\\u0066%d"}`, n, n)), object{"n": as(fmt.Sprintf("%d.00", n)), "o": as(`{"b":1,"a":2.0}`)}, object{"o": as(`{"a":2,"b":1}`)},
			object{"list": []any{n, n % 3, n % 3, nil, " "}}, object{"list": []any{}, "text": as(`" \u00a0\t"`)}, object{"list": []any{"a", fmt.Sprint(n % 3)}, "text": ""},
		}
		if unreadable {
			forms = append(forms, object{"text": as(`"\u0000"`)}, object{"text": as(`"\ud800"`)}, object{"n": as("1e999999"), "x": n}, object{"n": as("1E-99999"), "x": n})
		}
		b, err := json.Marshal(forms[random.IntN(len(forms))])
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	var entries, events []any
	for range 120 {
		e := newEntry(project, id(), when())
		e["embeddable_id"] = fmt.Sprintf("emb_%d", random.IntN(2))
		e["contact_id"] = fmt.Sprintf("co_%d", random.IntN(40))
		e["created_at"] = when().Format(time.RFC3339Nano)
		e["entry_data"] = data()
		entries = append(entries, e)
	}
	for range 400 {
		page := random.IntN(6)
		e := pageView(project, id(), page, when())
		if at, err := time.Parse(time.RFC3339Nano, e["timestamp"].(string)); err == nil && at.Year() == 2021 {
			e["timestamp"] = at.Truncate(24 * 30 * time.Hour).Add(time.Duration(random.IntN(600)) * time.Second).Format(time.RFC3339Nano)
		}
		version := random.IntN(4)
		e["embeddable_version_number"], e["total_pages"] = version, 4+random.IntN(3)
		e["page_key"] = fmt.Sprintf("%d of %d, %d", page, version, random.IntN(3))
		switch random.IntN(6) {
		case 0:
			e["embeddable_version_number"] = nil
		case 1:
			e["total_pages"] = nil
		case 2:
			e["event_type"] = "custom_event:triggered"
		}
		events = append(events, e)
		if random.IntN(5) == 0 {
			events = append(events, e)
		}
	}
	send := map[string][]any{"entries": entries, "events": events}
	for len(send) > 0 {
		for resource, lines := range send {
			n := min(len(lines), 1+random.IntN(100))
			s.Ingest(t, resource, lines[:n]...) // it rejects the erased
			if send[resource] = lines[n:]; n == len(lines) {
				delete(send, resource)
			}
		}
	}
	administer(t, s, "DELETE", internalProject+"/entries/"+id(), "")
	administer(t, s, "DELETE", fmt.Sprintf("%s/contacts/co_%d", internalProject, random.IntN(40)), "")
	administer(t, s, "POST", internalProject+"/purge", purgeBody(time.Date(1970+random.IntN(3), 1, 1, 0, 0, 0, 0, time.UTC)))
}

// modelView is a page view of the model.
type modelView struct {
	at      time.Time
	seq     float64
	version *int
	page    int
	key     string
	last    bool
}

// modelEntry is an entry with its page views in their order.
type modelEntry struct {
	id, embeddable, data string
	contact, group       string
	created, updated     time.Time
	views                []modelView
}

// of returns the entry's views of a version, or those without one for nil.
func (e *modelEntry) of(version *int) (views []modelView) {
	for _, v := range e.views {
		if (v.version == nil) == (version == nil) && (version == nil || *v.version == *version) {
			views = append(views, v)
		}
	}
	return views
}

// model has what the lists of a project return.
type model []*modelEntry

func readModel(t *testing.T, s *servicetest.Service, key string) (m model) {
	t.Helper()
	parse := func(v any) time.Time {
		at, err := time.Parse(time.RFC3339Nano, v.(string))
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	views := map[any][]modelView{}
	for _, c := range followFeed(t, s, key, feed+"?types=event&limit=100000") {
		e := c["event"].(object)
		if e["event_type"] != "flowpage.viewed" {
			continue
		}
		v := modelView{at: parse(e["timestamp"]), seq: c["seq"].(float64), page: int(e["page_index"].(float64)), key: e["page_key"].(string)}
		if n, ok := e["embeddable_version_number"].(float64); ok {
			version := int(n)
			v.version = &version
		}
		n, ok := e["total_pages"].(float64)
		v.last = ok && int(n) == v.page+1
		views[e["entry_id"]] = append(views[e["entry_id"]], v)
	}
	entries, _ := s.List(t, key, "/projects/"+project+"/entries?limit=100000")
	for _, e := range entries {
		of := views[e["entry_id"]]
		slices.SortFunc(of, func(a, b modelView) int {
			if by := a.at.Compare(b.at); by != 0 {
				return by
			}
			return int(math.Copysign(1, a.seq-b.seq))
		})
		m = append(m, &modelEntry{
			id: e["entry_id"].(string), embeddable: e["embeddable_id"].(string), contact: e["contact_id"].(string), group: e["group_id"].(string), data: e["entry_data"].(string),
			created: parse(e["created_at"]), updated: parse(e["updated_at"]), views: of,
		})
	}
	return m
}

// ask returns a random question, and its answer.
func (m model) ask(random *rand.Rand) (path string, want any) {
	q := url.Values{}
	maybe := func() bool { return random.IntN(3) == 0 }
	all, anytime := m, m // anytime: by all filters but those of created_at
	filter := func(of *model, has func(*modelEntry) bool) {
		*of = slices.DeleteFunc(slices.Clone(*of), func(e *modelEntry) bool { return !has(e) })
	}
	keep := func(has func(*modelEntry) bool) {
		filter(&all, has)
		filter(&anytime, has)
	}
	kind := random.IntN(4)
	if kind == 1 || kind == 2 || maybe() {
		q.Set("embeddable_id", "emb_1")
		keep(func(e *modelEntry) bool { return e.embeddable == "emb_1" })
	}
	bounds := map[string]time.Time{}
	bound := func(name string, of func(*modelEntry) time.Time, sign int) {
		if maybe() {
			at := time.Date(2021, time.Month(1+6*(1-sign)/2+random.IntN(8)), 1, 0, 0, 0, 0, time.UTC)
			q.Set(name, at.Format(time.RFC3339))
			bounds[name] = at
			in := func(e *modelEntry) bool { return of(e).Compare(at) == sign }
			filter(&all, in)
			if strings.HasPrefix(name, "updated") {
				filter(&anytime, in)
			}
		}
	}
	bound("created_after", func(e *modelEntry) time.Time { return e.created }, 1)
	bound("created_before", func(e *modelEntry) time.Time { return e.created }, -1)
	bound("updated_after", func(e *modelEntry) time.Time { return e.updated }, 1)
	bound("updated_before", func(e *modelEntry) time.Time { return e.updated }, -1)
	viewed := func(e *modelEntry) []modelView { return e.views } // what completed and furthest_page are about
	if maybe() {
		version := random.IntN(4)
		q.Set("version", fmt.Sprint(version))
		keep(func(e *modelEntry) bool { return e.of(&version) != nil })
		viewed = func(e *modelEntry) []modelView { return e.of(&version) }
	}
	if maybe() {
		is := random.IntN(2) == 0
		q.Set("completed", fmt.Sprint(is))
		keep(func(e *modelEntry) bool { return (completed(viewed(e)) >= 0) == is })
	}
	if q.Has("embeddable_id") && maybe() {
		page := random.IntN(6)
		q.Set("furthest_page", fmt.Sprint(page))
		keep(func(e *modelEntry) bool { return len(viewed(e)) > 0 && furthest(viewed(e)) == page })
	}
	if maybe() {
		answer, of := []string{`"a"`, "1", "100", `"DE"`, "null", "1.5", `{"a":1}`}[random.IntN(7)], []string{"", "n", "list", "country"}[random.IntN(4)]
		q.Set("answer", answer)
		if of != "" {
			q.Set("answer_key", of)
		}
		keep(func(e *modelEntry) bool { return e.answered(answer, of) })
	}
	earlier := func() *model { // the entries of the period before; nil without one
		after, ok := bounds["created_after"]
		if !ok {
			return nil
		}
		until, ok := bounds["created_before"]
		if !ok {
			until = time.Now()
		}
		// The instants of the period are from after, excluded, to until, excluded.
		length := max(until.Sub(after)-time.Microsecond, 0)
		filter(&anytime, func(e *modelEntry) bool { return !e.created.After(after) && e.created.After(after.Add(-length)) })
		return &anytime
	}
	name := ""
	switch kind {
	case 3:
		name = "entries-overview"
		interval := []string{"week", "month", "all"}[random.IntN(3)]
		q.Set("timezone", "Pacific/Apia")
		q.Set("interval", interval)
		want = all.overview("Pacific/Apia", interval, earlier())
	case 0:
		name = "entries-counts"
		zone := []string{"UTC", "US/Pacific", "Asia/Calcutta", "Atlantic/Azores", "Africa/Cairo", "Pacific/Apia"}[random.IntN(6)]
		interval := []string{"hour", "day", "week", "month", "all"}[random.IntN(5)]
		by := []string{"none", "embeddable", "version"}[random.IntN(3)]
		if interval == "hour" && by == "none" {
			by = "embeddable" // the hours without entries would be more rows than an answer may have
		}
		q.Set("timezone", zone)
		q.Set("interval", interval)
		q.Set("by", by)
		for parameter, of := range map[string]func(*modelEntry) string{
			"contact_id": func(e *modelEntry) string { return e.contact }, "group_id": func(e *modelEntry) string { return e.group },
		} {
			if len(all) > 0 && random.IntN(8) == 0 {
				id := of(all[random.IntN(len(all))])
				q.Set(parameter, id)
				keep(func(e *modelEntry) bool { return of(e) == id })
			}
		}
		if maybe() {
			q.Set("search", "en_1")
			keep(func(e *modelEntry) bool { return strings.Contains(e.id, "en_1") })
		}
		want = all.counts(zone, interval, by)
		if interval == "all" && by == "none" {
			most := 1 + random.IntN(60)
			q.Set("at_most", fmt.Sprint(most))
			if len(all) >= most {
				want = []object{{"from": nil, "to": nil, "embeddable_id": nil, "version_number": nil, "entries": most, "started": nil, "completed": nil, "at_least": true}}
			}
		}
	case 1:
		name = "entries-funnel"
		byVersion := random.IntN(2) == 0
		if byVersion {
			q.Set("by", "version")
		}
		want = all.funnels(byVersion)
	case 2:
		name = "entries-answers"
		key := []string{"", "n", "country", "free", "text", "list", "z", "o"}[random.IntN(8)]
		values := random.IntN(3) * (1 + random.IntN(50)) / 2
		var before *model
		if q.Has("created_after") && random.IntN(2) == 0 {
			q.Set("previous", "true")
			before = earlier()
		}
		switch {
		case key != "":
			q.Set("key", key)
			answer := all.values(key, 50)
			if random.IntN(2) == 0 {
				interval := []string{"day", "week", "month"}[random.IntN(3)]
				q.Set("interval", interval)
				q.Set("timezone", "Pacific/Apia")
				all.addIntervals(answer, "Pacific/Apia", interval)
			}
			want = withPrevious(answer, key, before)
		case values > 0:
			q.Set("values", fmt.Sprint(values))
			want = all.keyValues(values, before)
		default:
			want = withPrevious(all.keys(), "", before)
		}
	}
	return "/projects/" + project + "/" + name + "?" + q.Encode(), want
}

// slice is the views of an entry that one row counts.
type slice struct {
	version *int
	views   []modelView
}

// slices returns the rows in which an entry counts.
func (e *modelEntry) slices(byVersion bool) (all []slice) {
	if !byVersion {
		return []slice{{nil, e.views}}
	}
	seen := map[string]bool{}
	for _, v := range e.views {
		if name := versionName(v.version); !seen[name] {
			seen[name] = true
			all = append(all, slice{v.version, e.of(v.version)})
		}
	}
	if all == nil {
		all = []slice{{}}
	}
	return all
}

func versionName(v *int) string {
	if v == nil {
		return "none"
	}
	return fmt.Sprint(*v)
}

func furthest(views []modelView) int {
	return slices.MaxFunc(views, func(a, b modelView) int { return a.page - b.page }).page
}

// answered reports whether the entry has the answer, which is JSON, at a key or at any key.
func (e *modelEntry) answered(answer, key string) bool {
	var want any
	if err := json.Unmarshal([]byte(answer), &want); err != nil {
		panic(err)
	}
	fields, _ := e.read().(object)
	for name, value := range fields {
		elements, _ := value.([]any)
		if (key == "" || key == name) && (cmp.Equal(value, want) || slices.ContainsFunc(elements, func(v any) bool { return cmp.Equal(v, want) })) {
			return true
		}
	}
	return false
}

func completed(views []modelView) int {
	return slices.IndexFunc(views, func(v modelView) bool { return v.last })
}

// counts is the answer of entries-counts.
func (m model) counts(zone, interval, by string) any {
	location, err := time.LoadLocation(zone)
	if err != nil {
		panic(err)
	}
	// begin returns the first moment of a local date.
	begin := func(y int, month time.Month, d int) time.Time {
		want := time.Date(y, month, d, 0, 0, 0, 0, time.UTC)
		for at := want.Add(-26 * time.Hour); ; at = at.Add(15 * time.Minute) {
			y, month, d := at.In(location).Date()
			if !time.Date(y, month, d, 0, 0, 0, 0, time.UTC).Before(want) {
				return at
			}
		}
	}
	span := func(at time.Time, next int) time.Time {
		y, month, d := at.In(location).Date()
		switch interval {
		case "hour": // the zones here are whole hours, or half an hour, from UTC
			half := time.Duration(at.In(location).Minute()-at.UTC().Minute()) * time.Minute
			return at.Add(half).Truncate(time.Hour).Add(time.Duration(next)*time.Hour - half)
		case "day":
			return begin(y, month, d+next)
		case "week":
			return begin(y, month, d-(int(at.In(location).Weekday())+6)%7+7*next)
		default:
			return begin(y, month+time.Month(next), 1)
		}
	}
	inYears := func(e *modelEntry) bool { return e.created.Year() >= 2000 && e.created.Year() <= 2100 }
	var first, last time.Time
	for _, e := range m {
		if inYears(e) {
			if first.IsZero() || e.created.Before(first) {
				first = e.created
			}
			if e.created.After(last) {
				last = e.created
			}
		}
	}
	type name struct{ from, embeddable, version string }
	rows := map[name]object{}
	add := func(from, to any, embeddable, version any, entries, started, completed int) {
		n := name{fmt.Sprint(from), fmt.Sprint(embeddable), fmt.Sprint(version)}
		if rows[n] == nil {
			rows[n] = object{"from": from, "to": to, "embeddable_id": embeddable, "version_number": version, "entries": 0, "started": 0, "completed": 0}
		}
		for field, more := range map[string]int{"entries": entries, "started": started, "completed": completed} {
			rows[n][field] = rows[n][field].(int) + more
		}
	}
	text := func(at time.Time) any { return at.UTC().Format(time.RFC3339) }
	for _, e := range m {
		for _, p := range e.slices(by == "version") {
			var from, to, embeddable, version any
			switch {
			case interval == "all" && !first.IsZero():
				y, month, d := first.In(location).Date()
				from = text(begin(y, month, d))
				y, month, d = last.In(location).Date()
				to = text(begin(y, month, d+1))
			case interval != "all" && inYears(e):
				from, to = text(span(e.created, 0)), text(span(e.created, 1))
			}
			if by != "none" {
				embeddable = e.embeddable
			}
			if by == "version" && p.version != nil {
				version = *p.version
			}
			add(from, to, embeddable, version, 1, min(len(p.views), 1), 1+max(-1, min(completed(p.views), 0)))
		}
	}
	if by == "none" && interval != "all" && !first.IsZero() {
		for at := span(first, 0); !at.After(last); at = span(at, 1) {
			add(text(at), text(span(at, 1)), nil, nil, 0, 0, 0)
		}
	}
	order := func(n name) string {
		if n.from == "<nil>" {
			n.from = "z"
		}
		if n.version == "<nil>" {
			n.version = "z"
		}
		return n.from + " " + n.embeddable + " " + n.version
	}
	list := []object{}
	for _, n := range slices.SortedFunc(maps.Keys(rows), func(a, b name) int { return strings.Compare(order(a), order(b)) }) {
		list = append(list, rows[n])
	}
	return list
}

// overview is the answer of entries-overview. earlier has the entries of the period before, or is nil.
func (m model) overview(zone, interval string, earlier *model) any {
	totals := func(of model) object {
		sum := object{"entries": len(of), "started": 0, "completed": 0}
		for _, e := range of {
			sum["started"] = sum["started"].(int) + min(len(e.views), 1)
			sum["completed"] = sum["completed"].(int) + 1 + max(-1, min(completed(e.views), 0))
		}
		return sum
	}
	answer := object{"intervals": m.counts(zone, interval, "none"), "previous": nil}
	split, before := map[string]model{}, map[string]model{}
	for _, e := range m {
		split[e.embeddable] = append(split[e.embeddable], e)
	}
	if earlier != nil {
		answer["previous"] = totals(*earlier)
		for _, e := range *earlier {
			before[e.embeddable] = append(before[e.embeddable], e)
			split[e.embeddable] = slices.Clone(split[e.embeddable]) // also one without entries now
		}
	}
	list := []object{}
	for id, of := range split {
		one := totals(of)
		one["embeddable_id"], one["previous"], one["largest_drop"] = id, nil, nil
		if earlier != nil {
			one["previous"] = totals(before[id])
		}
		var share float64
		for _, p := range of.funnels(false).([]object)[0]["pages"].([]object) {
			reached, dropped := p["reached"].(int), p["dropped"].(int)
			if lost := float64(dropped) / float64(reached); reached*10 >= one["started"].(int) && lost > share {
				share = lost
				one["largest_drop"] = object{"page_index": p["page_index"], "page_key": p["page_key"], "reached": reached, "dropped": dropped}
			}
		}
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b object) int {
		if by := b["entries"].(int) - a["entries"].(int); by != 0 {
			return by
		}
		return strings.Compare(a["embeddable_id"].(string), b["embeddable_id"].(string))
	})
	answer["embeddables"] = list
	return answer
}

// median returns the median of times in tenths of a second, in seconds, or nil.
func median(of []int64) any {
	if len(of) == 0 {
		return nil
	}
	slices.Sort(of)
	return (float64(of[(len(of)-1)/2]) + float64(of[len(of)/2])) / 20
}

// funnels is the answer of entries-funnel.
func (m model) funnels(byVersion bool) any {
	versions := map[string][]*int{}
	groups := map[string][]slice{}
	for _, e := range m {
		for _, p := range e.slices(byVersion) {
			name := versionName(p.version)
			versions[name] = append(versions[name], p.version)
			groups[name] = append(groups[name], p)
		}
	}
	if !byVersion {
		versions["none"] = []*int{nil}
	}
	list := []object{}
	for _, name := range slices.SortedFunc(maps.Keys(versions), func(a, b string) int { // none is first
		return strings.Compare(strings.Replace(a, "none", "", 1), strings.Replace(b, "none", "", 1))
	}) {
		list = append(list, m.funnel(versions[name][0], groups[name], byVersion))
	}
	return list
}

func (m model) funnel(version *int, of []slice, byVersion bool) object {
	started, ended := 0, []int64{}
	pages := map[int]bool{}
	for _, p := range of {
		started += min(len(p.views), 1)
		if i := completed(p.views); i >= 0 {
			ended = append(ended, (p.views[i].at.UnixMicro()-p.views[0].at.UnixMicro())/1e5)
		}
		for _, v := range p.views {
			pages[v.page] = true
		}
	}
	list := []object{}
	for _, page := range slices.Sorted(maps.Keys(pages)) {
		reached, dropped, dwells := 0, 0, []int64{}
		for _, p := range of {
			if len(p.views) == 0 {
				continue
			}
			furthest := furthest(p.views)
			if furthest >= page {
				reached++
			}
			if furthest == page && !slices.ContainsFunc(p.views, func(v modelView) bool { return v.page == page && v.last }) {
				dropped++
			}
			if i := slices.IndexFunc(p.views, func(v modelView) bool { return v.page == page }); i >= 0 {
				if j := slices.IndexFunc(p.views[i:], func(v modelView) bool { return v.page != page }); j >= 0 {
					dwells = append(dwells, (p.views[i+j].at.UnixMicro()-p.views[i].at.UnixMicro())/1e5)
				}
			}
		}
		list = append(list, object{"page_index": page, "page_key": m.pageKey(page, version, byVersion), "reached": reached, "dropped": dropped, "median_seconds": median(dwells)})
	}
	var number any
	if version != nil {
		number = *version
	}
	return object{"version_number": number, "entries": len(of), "started": started, "completed": len(ended), "median_seconds": median(ended), "pages": list}
}

// pageKey returns the key in the latest view of the newest version, of the entry with the greatest id.
func (m model) pageKey(page int, version *int, byVersion bool) (key any) {
	newest, of := -2, ""
	for _, e := range m {
		for _, v := range e.views {
			number := -1
			if v.version != nil {
				number = *v.version
			}
			if v.page != page || byVersion && versionName(v.version) != versionName(version) {
				continue
			}
			if number > newest || number == newest && e.id >= of {
				newest, of, key = number, e.id, v.key
			}
		}
	}
	return key
}

// read returns the parsed data, or nil if Postgres cannot parse it.
func (e *modelEntry) read() any {
	var v any
	if strings.Contains(e.data, `\u0000`) || strings.Contains(e.data, `\ud800`) || strings.Contains(e.data, "1e999999") || strings.Contains(e.data, "1E-99999") {
		return nil
	}
	if err := json.Unmarshal([]byte(e.data), &v); err != nil {
		panic(err)
	}
	return v
}

func (m model) keys() object {
	unreadable := 0
	types := map[string]map[string]int{}
	for _, e := range m {
		v := e.read()
		if v == nil {
			unreadable++
		}
		fields, _ := v.(object)
		for name, value := range fields {
			if types[name] == nil {
				types[name] = map[string]int{}
			}
			kind := map[string]string{"string": "string", "float64": "number", "bool": "boolean", "<nil>": "null", "[]interface {}": "array", "map[string]interface {}": "object"}[fmt.Sprintf("%T", value)]
			types[name][kind]++
		}
	}
	list := []object{}
	for name, of := range types {
		sum := 0
		for _, n := range of {
			sum += n
		}
		list = append(list, object{"key": name, "entries": sum, "types": of})
	}
	slices.SortFunc(list, func(a, b object) int {
		if by := b["entries"].(int) - a["entries"].(int); by != 0 {
			return by
		}
		return strings.Compare(a["key"].(string), b["key"].(string))
	})
	return object{"entries": len(m), "unreadable": unreadable, "keys": list}
}

// keyValues is the answer about all keys with their values.
func (m model) keyValues(most int, before *model) any {
	answer := withPrevious(m.keys(), "", before)
	for _, key := range answer["keys"].([]object) {
		values := withPrevious(m.values(key["key"].(string), most), key["key"].(string), before)
		for _, field := range []string{"none", "multiple", "others", "values", "numbers"} {
			key[field] = values[field]
		}
	}
	return answer
}

// withPrevious adds to an answer, and to its values of key, the counts of the period before, unless there is none.
func withPrevious(answer object, key string, before *model) object {
	if before == nil {
		return answer
	}
	answer["previous"] = len(*before)
	values, _ := answer["values"].([]object)
	counts := before.countsOf(key)
	for _, v := range values {
		v["previous"] = counts[text(v["value"])]
	}
	return answer
}

// addIntervals adds to the answer about a key the counts of its values by interval.
func (m model) addIntervals(answer object, zone, interval string) {
	rows := []object{}
	for _, row := range m.counts(zone, interval, "none").([]object) {
		if row["from"] == nil {
			continue
		}
		rows = append(rows, object{"from": row["from"], "to": row["to"], "entries": row["entries"]})
	}
	answer["intervals"] = rows
	values := answer["values"].([]object)
	for _, v := range values {
		v["by_interval"] = []int{}
	}
	for _, row := range rows {
		in := slices.DeleteFunc(slices.Clone(m), func(e *modelEntry) bool {
			at := e.created.UTC().Format(time.RFC3339)
			return at < row["from"].(string) || at >= row["to"].(string)
		})
		counts := in.countsOf(answer["key"].(string))
		for _, v := range values {
			v["by_interval"] = append(v["by_interval"].([]int), counts[text(v["value"])])
		}
	}
}

// countsOf counts the entries that have each value of a key, by its JSON.
func (m model) countsOf(key string) map[string]int {
	counts := map[string]int{}
	for _, v := range m.values(key, math.MaxInt)["values"].([]object) {
		counts[text(v["value"])] = v["entries"].(int)
	}
	return counts
}

// text returns a value as JSON.
func text(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// values is the answer about a key with its most frequent values.
func (m model) values(key string, most int) object {
	unreadable, none, multiple := 0, 0, 0
	values := make([]map[string]bool, 0, len(m)) // of each entry with an answer
	counts, value := map[string]int{}, map[string]any{}
	var numbers []float64
	for _, e := range m {
		v := e.read()
		fields, _ := v.(object)
		answer, has := fields[key]
		switch {
		case v == nil:
			unreadable++
		case !has:
			none++
		default:
			elements, isArray := answer.([]any)
			if !isArray {
				elements = []any{answer}
			}
			own := map[string]bool{}
			for _, element := range elements {
				if text, ok := element.(string); element == nil || ok && strings.TrimSpace(text) == "" {
					continue
				}
				b, _ := json.Marshal(element)
				own[string(b)], value[string(b)] = true, element
			}
			if len(own) == 0 {
				none++
				continue
			}
			if isArray {
				multiple++
			}
			values = append(values, own)
			for text := range own {
				counts[text]++
			}
			if n, ok := answer.(float64); ok {
				numbers = append(numbers, n)
			}
		}
	}
	list := []object{}
	for text, n := range counts {
		list = append(list, object{"value": value[text], "entries": n})
	}
	// Values of one count come in the order of jsonb.
	slices.SortFunc(list, func(a, b object) int {
		if by := b["entries"].(int) - a["entries"].(int); by != 0 {
			return by
		}
		return compareJSONB(a["value"], b["value"])
	})
	list = list[:min(len(list), most)]
	listed := map[string]bool{}
	for _, o := range list {
		b, _ := json.Marshal(o["value"])
		listed[string(b)] = true
	}
	others := 0
	for _, own := range values {
		for text := range own {
			if !listed[text] {
				others++
				break
			}
		}
	}
	return object{
		"key": key, "entries": len(m), "unreadable": unreadable, "none": none, "multiple": multiple, "others": others,
		"values": list, "numbers": distribution(numbers),
	}
}

// compareJSONB orders as jsonb does: texts before numbers, and objects by their size and the value of the key a.
func compareJSONB(a, b any) int {
	if o, ok := a.(object); ok {
		if by := len(o) - len(b.(object)); by != 0 {
			return by
		}
		return compareJSONB(o["a"], b.(object)["a"])
	}
	x, isText := a.(string)
	y, isText2 := b.(string)
	switch {
	case isText && isText2:
		return strings.Compare(x, y)
	case isText:
		return -1
	case isText2:
		return 1
	}
	n, _ := a.(float64)
	o, _ := b.(float64)
	return int(math.Copysign(1, n-o))
}

func distribution(numbers []float64) any {
	if len(numbers) == 0 {
		return nil
	}
	slices.Sort(numbers)
	at := func(part float64) float64 {
		i := part * float64(len(numbers)-1)
		low, high := numbers[int(math.Floor(i))], numbers[int(math.Ceil(i))]
		return low + (high-low)*(i-math.Floor(i))
	}
	least, most := numbers[0], numbers[len(numbers)-1]
	bounds := roundBounds(least, most)
	bins := make([]object, len(bounds)-1)
	for i := range bins {
		bins[i] = object{"from": bounds[i], "to": bounds[i+1], "entries": 0}
	}
	for _, x := range numbers {
		i := len(bins) - 1
		for i > 0 && x < bounds[i] {
			i--
		}
		bins[i]["entries"] = bins[i]["entries"].(int) + 1
	}
	return object{
		"entries": len(numbers), "minimum": least, "lower_quartile": at(0.25), "median": at(0.5), "upper_quartile": at(0.75),
		"maximum": most, "bins": bins,
	}
}

// roundBounds returns the bounds of the bins: twenty halves of the least round step of which ten hold all numbers.
func roundBounds(least, most float64) []float64 {
	if least == most {
		return []float64{least, most}
	}
	for power := -3; ; power++ { // numbers of the tests are halves
		for _, times := range []string{"1", "2", "5"} {
			step, _ := new(big.Rat).SetString(times + "e" + strconv.Itoa(power))
			floor := func(x float64) *big.Int {
				n, _ := new(big.Rat).SetString(strconv.FormatFloat(x, 'g', -1, 64))
				n.Quo(n, step)
				return new(big.Int).Div(n.Num(), n.Denom())
			}
			first := floor(least)
			if new(big.Int).Sub(floor(most), first).Cmp(big.NewInt(10)) >= 0 {
				continue
			}
			var bounds []float64
			for i := range int64(21) {
				n := new(big.Rat).SetInt(first)
				n.Mul(n.Add(n, big.NewRat(i, 2)), step)
				bound, _ := n.Float64()
				bounds = append(bounds, bound)
			}
			return bounds
		}
	}
}

// TestRoundBins checks the bounds of bins, and that a number on a bound is in the bin that begins there.
func TestRoundBins(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	key := s.Keys.Key(project)
	for i, tt := range []struct {
		numbers []string
		want    []string // the bins that have a number
	}{
		{[]string{"0.3", "0.7", "1.2"}, []string{"0.3 to 0.35", "0.7 to 0.75", "1.2 to 1.25"}},
		{[]string{"-19.857", "0", "27.494"}, []string{"-20 to -17.5", "0 to 2.5", "25 to 27.5"}},
		{[]string{"-1e300", "1e-300", "1e300"}, []string{"-1e+300 to -7.5e+299", "0 to 2.5e+299", "1e+300 to 1.25e+300"}},
		{[]string{"7", "7"}, []string{"7 to 7"}},
	} {
		embeddable := fmt.Sprint("em_", i)
		for n, number := range tt.numbers {
			of := servicetest.With(newEntry(project, fmt.Sprint("en_", i, "_", n), at(1)), "embeddable_id", embeddable)
			s.MustIngest(t, "entries", servicetest.With(of, "entry_data", `{"n":`+number+`}`))
		}
		a := s.Get(t, key, "/projects/"+project+"/entries-answers?embeddable_id="+embeddable+"&key=n")
		var answer struct {
			Numbers struct {
				Bins []struct {
					From, To float64
					Entries  int
				}
			}
		}
		if err := json.Unmarshal(a.Body, &answer); err != nil || a.Status != 200 {
			t.Fatalf("%v: %d %s", tt.numbers, a.Status, a.Body)
		}
		var got []string
		for _, bin := range answer.Numbers.Bins {
			if bin.Entries > 0 {
				got = append(got, fmt.Sprintf("%v to %v", bin.From, bin.To))
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%v: %s", tt.numbers, diff)
		}
	}
}

// TestInsightsBounds checks how a question is refused that has too many rows or takes too long, and that a change makes a
// new ETag.
func TestInsightsBounds(t *testing.T) {
	t.Parallel()
	s := start(t, map[string]string{"STATEMENT_TIMEOUT": "1s"})
	key := s.Keys.Key(project)
	created := func(id, when string) object {
		return servicetest.With(newEntry(project, id, at(1)), "created_at", when)
	}
	s.MustIngest(t, "entries", created("en_1", "2010-01-01T00:00:00Z"), created("en_2", "2020-01-01T00:00:00Z"))
	const counts = "/projects/" + project + "/entries-counts"
	if a := s.Get(t, key, counts); a.Status != 400 || !strings.Contains(string(a.Body), "week") {
		t.Errorf("3,653 days: %d %s", a.Status, a.Body)
	}
	a := s.Get(t, key, counts+"?interval=week")
	if list, _ := s.List(t, key, counts+"?interval=week"); len(list) != 523 {
		t.Errorf("%d weeks", len(list))
	}
	if in := s.Ingest(t, "events", servicetest.With(pageView(project, "en_1", 1, at(1)), "embeddable_version_number", math.MinInt64)); in.Rejected != 1 {
		t.Errorf("the version that stands for none: %+v", in)
	}
	s.MustIngest(t, "events", pageView(project, "en_1", 1, at(1)))
	if again := s.Do(t, servicetest.Request{Path: counts + "?interval=week", Key: key, Headers: map[string]string{"If-None-Match": a.Header.Get("Etag")}}); again.Status != 200 {
		t.Errorf("after a change: %d", again.Status)
	}
	unchanged := servicetest.Request{Path: counts + "?interval=week", Key: key, Headers: map[string]string{"If-None-Match": s.Get(t, key, counts+"?interval=week").Header.Get("Etag")}}
	if same := s.Do(t, unchanged); same.Status != 304 {
		t.Errorf("the same data: %d", same.Status)
	}
	for query, parameter := range map[string]string{
		"at_most=5": "interval", "interval=all&by=version&at_most=5": "by", "interval=all&at_most=0": "at_most", "furthest_page=1": "embeddable_id", "answer_key=q": "answer", "answer=Yes": "answer",
	} {
		if a := s.Get(t, key, counts+"?"+query); a.Status != 400 || !strings.Contains(string(a.Body), `"parameter":"`+parameter+`"`) {
			t.Errorf("%s: %d %s", query, a.Status, a.Body)
		}
	}
	for _, path := range []string{"overview?search=abc", "funnel?embeddable_id=emb_1&contact_id=co_1", "answers?embeddable_id=emb_1&group_id=gr_1"} {
		if a := s.Get(t, key, "/projects/"+project+"/entries-"+path); a.Status != 400 {
			t.Errorf("%s: %d %s", path, a.Status, a.Body)
		}
	}
	lock(t, s, "progress")
	if a := s.Get(t, key, counts+"?interval=month"); a.Status != 422 || !strings.Contains(string(a.Body), "question_too_large") || !strings.Contains(string(a.Body), "created_after") || a.Header.Get("Retry-After") != "" {
		t.Errorf("a statement that takes too long: %d %v %s", a.Status, a.Header, a.Body)
	}
}

// TestAnswersNearlyAllDifferent checks the answer about keys whose values are nearly all different: exact counts, and the
// latest values instead of the most frequent.
func TestAnswersNearlyAllDifferent(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	key := s.Keys.Key(project)
	const entries = 1200
	send := make([]any, entries)
	for i := range send {
		e := servicetest.With(newEntry(project, fmt.Sprintf("en_%d", i), at(1)), "embeddable_id", "emb_1")
		e["created_at"] = time.Date(2026, 1, 1, 0, 0, i, 0, time.UTC).Format(time.RFC3339)
		data := object{"mail": fmt.Sprintf("p%d@example.com", i), "id": i, "list": []string{fmt.Sprint(i)}, "plan": fmt.Sprint(i % 2)}
		switch {
		case i%100 == 7:
			data["mail"] = " \u00a0"
		case i%100 == 8:
			data["mail"] = nil
		case i%100 == 9:
			data["mail"] = "é" + fmt.Sprint(i)
		case i == entries-1:
			data["mail"] = "p3@example.com" // the latest value, and not the only time
		}
		if i%10 == 0 {
			data["rare"] = i // too few entries to say
		}
		b, err := json.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		e["entry_data"] = string(b)
		send[i] = e
	}
	s.MustIngest(t, "entries", send...)
	path := "/projects/" + project + "/entries-answers?embeddable_id=emb_1"
	var got struct {
		Keys []object
	}
	s.Get(t, key, path+"&values=2").JSON(t, &got)
	byKey := map[string]object{}
	for _, k := range got.Keys {
		if numbers, ok := k["numbers"].(object); ok {
			delete(numbers, "bins")
		}
		byKey[k["key"].(string)] = k
	}
	values := func(of ...any) []object {
		list := make([]object, len(of))
		for i, v := range of {
			list[i] = object{"value": v}
		}
		return list
	}
	want := plain(t, []object{
		{"key": "mail", "entries": entries, "types": object{"string": entries - 12, "null": 12}, "distinct": "many", "none": 24, "multiple": 0, "others": entries - 24,
			"values": values("p3@example.com", "p1198@example.com"), "numbers": nil},
		{"key": "id", "entries": entries, "types": object{"number": entries}, "distinct": "many", "none": 0, "multiple": 0, "others": entries, "values": values(1199, 1198),
			"numbers": object{"entries": entries, "minimum": 0, "lower_quartile": 299.75, "median": 599.5, "upper_quartile": 899.25, "maximum": 1199}},
		{"key": "list", "entries": entries, "types": object{"array": entries}, "distinct": "many", "none": 0, "multiple": entries, "others": entries, "values": values("1199", "1198"), "numbers": nil},
		{"key": "plan", "entries": entries, "types": object{"string": entries}, "none": 0, "multiple": 0, "others": 0,
			"values": []object{{"value": "0", "entries": entries / 2}, {"value": "1", "entries": entries / 2}}, "numbers": nil},
	})
	if diff := cmp.Diff(want, plain(t, []object{byKey["mail"], byKey["id"], byKey["list"], byKey["plan"]})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if byKey["rare"]["distinct"] != nil {
		t.Errorf("%v", byKey["rare"])
	}
	var one object
	s.Get(t, key, path+"&key=mail").JSON(t, &one)
	if first := one["values"].([]any)[0].(object); one["distinct"] != nil || first["value"] != "p3@example.com" || first["entries"] != 2.0 {
		t.Errorf("the key alone: %v", first)
	}
	for query, parameter := range map[string]string{"&previous=true": "created_after", "&interval=day": "key", "&key=plan&interval=all": "interval"} {
		if a := s.Get(t, key, path+query); a.Status != 400 || !strings.Contains(string(a.Body), `"parameter":"`+parameter+`"`) {
			t.Errorf("%s: %d %s", query, a.Status, a.Body)
		}
	}
	var hours object
	s.Get(t, key, path+"&key=plan&interval=hour&created_after=2026-01-01T00:10:00Z&previous=true").JSON(t, &hours)
	if diff := cmp.Diff(plain(t, []object{{"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T01:00:00Z", "entries": 599}}), hours["intervals"]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(plain(t, []object{{"value": "1", "entries": 300, "previous": 300, "by_interval": []int{300}}, {"value": "0", "entries": 299, "previous": 301, "by_interval": []int{299}}}), hours["values"]); diff != "" {
		t.Error(diff)
	}
}
