package demo

import (
	"fmt"
	"math/rand/v2"
	"strconv"
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

// visits generates all entries, the oldest first, and calls each with every entry and its events. visits stops at the
// first error that each returns.
func visits(each func(client.Entry, []Event) error) error {
	rng := rand.New(rand.NewPCG(seed, 1))
	all, custom := flows(), customEvents()
	counts := eventCounts(rng)
	starts := startTimes(rng)
	for i := range EntryCount {
		// Each entry has its own generator, so that a change of one flow leaves the entries of others unchanged.
		own := rand.New(rand.NewPCG(seed, uint64(i)+2))
		if err := each(visit(own, all, custom, i, starts[i], counts[i])); err != nil {
			return err
		}
	}
	return nil
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
	first := End().AddDate(0, 0, -Days)
	weights := make([]int, Days*24)
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
func visit(rng *rand.Rand, all []flow, custom []customEvent, i int, start time.Time, count int) (client.Entry, []Event) {
	v := newVisitor(rng)
	f := flowOf(rng, all)
	entry := client.Entry{
		EntryID: fmt.Sprintf("ent_%05d%s", i+1, suffix(rng)), GroupID: f.groupID, ProjectID: ProjectID,
		EmbeddableID: f.id, ContactID: v.contactID, CreatedAt: start, UpdatedAt: start,
	}
	url := f.url + pick(v, "", "", "?utm_source=newsletter", "?utm_source=search&utm_campaign=autumn")
	version := f.version(start)
	// A visit ends before the end of the data.
	left := End().Add(-time.Second).Sub(start)
	pause := min(90*time.Second, left/time.Duration(count+1))

	events := make([]Event, 0, count)
	at, here, furthest := start, 0, 0
	add := func(set func(*Event)) {
		page, most := f.pages[here], f.pages[furthest]
		e := Event{fmt.Sprintf("evt_%s_%02d", entry.EntryID[len("ent_"):], len(events)+1), client.Event{
			EntryID: entry.EntryID, ContactID: entry.ContactID, ProjectID: ProjectID, GroupID: entry.GroupID,
			EmbeddableID: f.id, VersionNumber: new(int64(version)), Timestamp: at,
			PageID: &page.id, PageKey: &page.key, PageIndex: new(int64(here)),
			MaxPageID: &most.id, MaxPageKey: &most.key, MaxPageIndex: new(int64(furthest)),
			TotalPages: new(int64(len(f.pages))),
		}, &url}
		set(&e)
		events = append(events, e)
		entry.UpdatedAt = at
		at = at.Add((pause/10 + time.Duration(rng.Int64N(int64(pause*9/10)+1))).Truncate(time.Millisecond) + time.Millisecond)
	}
	viewed := func(e *Event) { e.EventType, e.ViewType = "flowpage.viewed", new("flowpage") }

	add(viewed)
	for len(events) < count {
		if c, ok := customOn(f.pages[here].key, custom); ok && rng.IntN(100) < 55 {
			props, _ := plain(c.props(v)) // never fails: it only contains strings, numbers and booleans
			add(func(e *Event) {
				e.EventType = "custom_event:triggered"
				e.CustomEventName, e.CustomEventProps = new(c.name), new(string(props))
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
	entry.Data = answers(v, f, furthest, here)
	return entry, events
}

// answers returns the visitor's answers as JSON: those on the pages before the furthest page. The answers on the
// furthest page are included if the visitor left the page, and otherwise with a probability of one half.
func answers(v *visitor, f flow, furthest, here int) string {
	data := pairs{}
	for i, p := range f.pages {
		if i > furthest || i == furthest && i == here && v.rng.IntN(2) == 0 {
			break
		}
		for _, q := range p.questions {
			answer := q.answer(v)
			if v.rng.IntN(100) < q.optional {
				answer = nil
			}
			data = append(data, pair{q.name, answer})
		}
	}
	b, _ := plain(data) // never fails: it only contains strings, numbers, booleans and lists of strings
	return string(b)
}

func flowOf(rng *rand.Rand, all []flow) flow {
	n := rng.IntN(100)
	for _, f := range all {
		if n < f.share {
			return f
		}
		n -= f.share
	}
	return all[len(all)-1]
}

func customOn(key string, custom []customEvent) (customEvent, bool) {
	for _, c := range custom {
		if c.page == key {
			return c, true
		}
	}
	return customEvent{}, false
}

// newVisitor returns a random one of 7,000 contacts, so that some contacts have more than one entry. The name of a
// contact is always the same.
func newVisitor(rng *rand.Rand) *visitor {
	n := rng.IntN(7000)
	own := rand.New(rand.NewPCG(seed, 1<<40+uint64(n))) // the same contact always has the same name
	v := &visitor{rng: own, contactID: "con_" + strconv.Itoa(10000+n)}
	v.first = pick(v, "Ada", "Björn", "Chloé", "Dmitri", "Elif", "Farah", "Grace", "Hugo", "Ines", "Jürgen",
		"Kofi", "Lucía", "Mei", "Noah", "Olga", "Priya", "Quentin", "Rosa", "Søren", "Tomás", "Uma", "Wanjiru", "Yuki", "Zoë")
	v.last = pick(v, "Andersen", "Bauer", "Castillo", "Dubois", "Eriksson", "Ferrari", "García", "Haddad", "Ivanova",
		"Jansen", "Kowalska", "Larsson", "Müller", "Nakamura", "O'Brien", "Papadopoulos", "Quinn", "Rossi", "Şahin", "Tanaka", "Weber")
	v.rng = rng
	return v
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
