package demo

import (
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/lectern-dev/lectern/client"
)

// seed is the start value of all random generators, so seed determines all random data of the project.
const seed = 20261001

// The minimum and the maximum number of events that one entry has.
const (
	fewest = 1
	most   = 24
)

// flow is an embeddable of the demo project, and what its definitions say.
type flow struct {
	id, groupID string
	url         string
	pages       []page      // all versions have the same pages
	live        []time.Time // the one at index i is when version i+1 went live
}

// page is a page of a definition.
type page struct {
	ID, Key      string
	Components   []question
	CustomEvents []string `json:"custom_events"`
}

// flows returns the project's flows. A version goes live at the first midnight in UTC after it was saved.
func flows() (all []flow) {
	for _, e := range Embeddables() {
		var definition struct {
			Settings struct{ URL string }
			Pages    []page
		}
		must(json.Unmarshal([]byte(e.Definition), &definition))
		f := flow{id: e.EmbeddableID, groupID: e.GroupID, url: definition.Settings.URL, pages: definition.Pages}
		for _, v := range Versions() {
			if v.EmbeddableID == f.id {
				f.live = append(f.live, v.SavedAt.Truncate(24*time.Hour).AddDate(0, 0, 1))
			}
		}
		all = append(all, f)
	}
	return all
}

// visits generates all entries with their events, the oldest first.
func visits() iter.Seq2[client.Entry, []event] {
	return func(yield func(client.Entry, []event) bool) {
		rng := rand.New(rand.NewPCG(seed, 1))
		all, counts := flows(), eventCounts(rng)
		for i, start := range startTimes(rng) {
			// Each entry has its own generator, so that a change of one flow leaves the entries of others unchanged.
			if !yield(visit(rand.New(rand.NewPCG(seed, uint64(i)+2)), all, i, start, counts[i])) {
				return
			}
		}
	}
}

// eventCounts returns the number of events of each entry. The sum of all numbers is [EventCount].
func eventCounts(rng *rand.Rand) []int {
	counts := make([]int, EntryCount)
	sum := 0
	for i := range counts {
		// Many visitors leave on the first pages, and most of the others reach the end.
		if n := rng.IntN(100); n < 24 {
			counts[i] = fewest + rng.IntN(4)
		} else {
			counts[i] = 5 + rng.IntN(4) + rng.IntN(4) + rng.IntN(3)
		}
		sum += counts[i]
	}
	for sum != EventCount {
		i := rng.IntN(EntryCount)
		switch {
		case sum < EventCount && counts[i] < most:
			counts[i]++
			sum++
		case sum > EventCount && counts[i] > fewest:
			counts[i]--
			sum--
		}
	}
	return counts
}

// startTimes returns the start times of the entries in ascending order. More entries start by day than by night, and
// more on weekdays than on weekends.
func startTimes(rng *rand.Rand) []time.Time {
	first := End().AddDate(0, 0, -days)
	weights := make([]int, days*24)
	total := 0
	byHour := [24]int{3, 2, 1, 1, 1, 2, 5, 9, 13, 15, 16, 15, 17, 15, 14, 13, 13, 15, 18, 21, 22, 18, 11, 6}
	for h := range weights {
		at := first.Add(time.Duration(h) * time.Hour)
		weights[h] = byHour[at.Hour()] * 10
		if day := at.Weekday(); day == time.Saturday || day == time.Sunday {
			weights[h] = byHour[at.Hour()] * 7
		}
		// A campaign in the fifth week.
		if day := h / 24; day >= 30 && day < 37 {
			weights[h] = weights[h] * 8 / 5
		}
		total += weights[h]
	}
	starts := make([]time.Time, 0, EntryCount)
	perHour := make([]int, len(weights))
	for range EntryCount {
		n := rng.IntN(total)
		h := 0
		for n >= weights[h] {
			n -= weights[h]
			h++
		}
		perHour[h]++
	}
	for h, n := range perHour {
		// The entries of an hour are spread over equal parts of the hour, so the start times need no sorting.
		for i := range n {
			slot := time.Hour / time.Duration(n)
			within := slot*time.Duration(i) + time.Duration(rng.Int64N(int64(slot)))
			starts = append(starts, first.Add(time.Duration(h)*time.Hour+within.Truncate(time.Millisecond)))
		}
	}
	return starts
}

// visit generates the i-th entry, which begins at start, and exactly count events of the entry.
func visit(rng *rand.Rand, flows []flow, i int, start time.Time, count int) (client.Entry, []event) {
	v := newVisitor(rng)
	f := flows[len(flows)-1]
	if n := rng.IntN(100); n < 50 {
		f = flows[0]
	} else if n < 80 {
		f = flows[1]
	}
	entry := client.Entry{
		EntryID: fmt.Sprintf("ent_%05d%s", i+1, suffix(rng)), GroupID: f.groupID, ProjectID: ProjectID,
		EmbeddableID: f.id, ContactID: v.contactID, CreatedAt: start, UpdatedAt: start,
	}
	url := f.url + v.pick("", "", "?utm_source=newsletter", "?utm_source=search&utm_campaign=autumn")
	version := int64(0)
	for _, live := range f.live {
		if !live.After(start) {
			version++
		}
	}
	// A visit ends before the end of the data.
	left := End().Add(-time.Second).Sub(start)
	pause := min(90*time.Second, left/time.Duration(count+1))

	events := make([]event, 0, count)
	at, here, furthest := start, 0, 0
	add := func(set func(*event)) {
		page, most := f.pages[here], f.pages[furthest]
		e := event{fmt.Sprintf("evt_%s_%02d", entry.EntryID[len("ent_"):], len(events)+1), client.Event{
			EntryID: entry.EntryID, ContactID: entry.ContactID, ProjectID: ProjectID, GroupID: entry.GroupID,
			EmbeddableID: f.id, VersionNumber: &version, Timestamp: at,
			PageID: &page.ID, PageKey: &page.Key, PageIndex: new(int64(here)),
			MaxPageID: &most.ID, MaxPageKey: &most.Key, MaxPageIndex: new(int64(furthest)),
			TotalPages: new(int64(len(f.pages))),
		}, &url}
		set(&e)
		events = append(events, e)
		entry.UpdatedAt = at
		at = at.Add((pause/10 + time.Duration(rng.Int64N(int64(pause*9/10)+1))).Truncate(time.Millisecond) + time.Millisecond)
	}
	viewed := func(e *event) { e.EventType, e.ViewType = "flowpage.viewed", new("flowpage") }

	add(viewed)
	for len(events) < count {
		if custom := f.pages[here].CustomEvents; len(custom) > 0 && rng.IntN(100) < 55 {
			props := v.props(custom[0])
			add(func(e *event) {
				e.EventType, e.CustomEventName, e.CustomEventProps = "custom_event:triggered", &custom[0], &props
			})
			if len(events) == count {
				break
			}
		}
		switch last := len(f.pages) - 1; {
		case here == last || here > 0 && rng.IntN(100) < 11:
			here--
		default:
			here++
		}
		furthest = max(furthest, here)
		add(viewed)
	}
	entry.Data = v.answers(f.pages, furthest, here)
	return entry, events
}

// suffix returns three random characters for the end of an entry's id.
func suffix(rng *rand.Rand) string {
	const alphabet = "23456789abcdefghjkmnpqrstvwxyz"
	b := make([]byte, 3)
	for i := range b {
		b[i] = alphabet[rng.IntN(len(alphabet))]
	}
	return string(b)
}
