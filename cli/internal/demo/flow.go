package demo

import (
	"math/rand/v2"
	"strconv"
	"time"
)

// flow is an embeddable of the demo project: pages that a visitor goes through.
type flow struct {
	id       string
	title    string
	groupID  string
	url      string
	share    int   // of 100 entries, how many are of this flow
	versions []int // day, from the first, on which version i+1 went live
	pages    []page
}

// page is one page of a flow, and what it asks.
type page struct {
	id, key   string
	questions []question
}

// question is one answer that a page leaves in the entry's data.
type question struct {
	name   string
	answer func(v *visitor) any
	// optional is out of 100 how often it stays unanswered, which is null.
	optional int
}

// customEvent is something that a page reports beside that it was viewed.
type customEvent struct {
	page  string // the key of its page
	name  string
	props func(v *visitor) pairs
}

// pairs is a JSON object that keeps its order.
type pairs []pair

type pair struct {
	name  string
	value any
}

// visitor is who fills in one entry, and the generator that decides for them.
type visitor struct {
	rng         *rand.Rand
	first, last string
	contactID   string
}

// pick returns one of choices, each as likely as the others.
func pick[T any](v *visitor, choices ...T) T { return choices[v.rng.IntN(len(choices))] }

// between returns a number from low to high, the middle likelier than the ends.
func (v *visitor) between(low, high int) int {
	width := high - low + 1
	return low + (v.rng.IntN(width)+v.rng.IntN(width))/2
}

// choose makes a question of one choice.
func choose(name string, choices ...string) question {
	return question{name: name, answer: func(v *visitor) any { return pick(v, choices...) }}
}

// number makes a question of a whole number, a multiple of step.
func number(name string, low, high, step int) question {
	return question{name: name, answer: func(v *visitor) any { return v.between(low, high) / step * step }}
}

// agree makes a question of yes and no; yes is out of 100 how often the answer is yes.
func agree(name string, yes int) question {
	return question{name: name, answer: func(v *visitor) any { return v.rng.IntN(100) < yes }}
}

func contactQuestions() []question {
	return []question{
		{name: "first_name", answer: func(v *visitor) any { return v.first }},
		{name: "last_name", answer: func(v *visitor) any { return v.last }},
		{name: "email", answer: func(v *visitor) any {
			return "visitor" + v.contactID[len("con_"):] + "@" + pick(v, "example.com", "example.net", "example.org")
		}},
		{name: "phone", optional: 45, answer: func(v *visitor) any {
			return "+1 555 01" + strconv.Itoa(10+v.rng.IntN(90))
		}},
		agree("newsletter", 38),
	}
}

func several(v *visitor, choices ...string) []string {
	chosen := []string{}
	for _, c := range choices {
		if v.rng.IntN(100) < 40 {
			chosen = append(chosen, c)
		}
	}
	return chosen
}

func flows() []flow {
	return []flow{
		{
			id: "emb_solar7kq2", title: "What would solar save you?", groupID: "grp_home", url: "https://solar.example.com/savings",
			share: 50, versions: []int{-30, 12, 51, 77},
			pages: []page{
				{id: "pg_so01", key: "welcome"},
				{id: "pg_so02", key: "home", questions: []question{
					choose("home_type", "Detached house", "Semi-detached house", "Terraced house", "Apartment"),
					agree("owner", 81)}},
				{id: "pg_so03", key: "roof", questions: []question{
					choose("roof_direction", "South", "South-east", "South-west", "East or west", "I don't know"),
					number("roof_area_m2", 20, 160, 5)}},
				{id: "pg_so04", key: "usage", questions: []question{
					number("monthly_bill_eur", 40, 320, 10),
					{name: "yearly_kwh", optional: 30, answer: func(v *visitor) any { return v.between(1500, 9500) }}}},
				{id: "pg_so05", key: "extras", questions: []question{
					{name: "interests", answer: func(v *visitor) any {
						return several(v, "Battery", "Wallbox", "Heat pump")
					}},
					choose("when", "As soon as possible", "Within 6 months", "Within a year", "Just looking")}},
				{id: "pg_so06", key: "estimate"},
				{id: "pg_so07", key: "contact", questions: contactQuestions()},
				{id: "pg_so08", key: "thanks"},
			},
		},
		{
			id: "emb_loan3xw9d", title: "Mortgage check in two minutes", groupID: "grp_home", url: "https://loans.example.com/mortgage-check",
			share: 30, versions: []int{-10, 33},
			pages: []page{
				{id: "pg_lo01", key: "start"},
				{id: "pg_lo02", key: "purpose", questions: []question{
					choose("purpose", "First home", "Next home", "Refinance", "Investment")}},
				{id: "pg_lo03", key: "property", questions: []question{
					number("price_eur", 120_000, 900_000, 5_000),
					{name: "postcode", answer: func(v *visitor) any {
						return "0" + strconv.Itoa(1000+v.rng.IntN(9000))
					}}}},
				{id: "pg_lo04", key: "deposit", questions: []question{number("deposit_eur", 0, 200_000, 1_000)}},
				{id: "pg_lo05", key: "income", questions: []question{
					number("net_income_eur", 1_600, 9_800, 100),
					choose("employment", "Employed", "Self-employed", "Civil servant", "Retired")}},
				{id: "pg_lo06", key: "household", questions: []question{
					number("adults", 1, 3, 1), number("children", 0, 4, 1)}},
				{id: "pg_lo07", key: "offer"},
				{id: "pg_lo08", key: "contact", questions: contactQuestions()},
				{id: "pg_lo09", key: "documents", questions: []question{agree("documents_ready", 54)}},
				{id: "pg_lo10", key: "done"},
			},
		},
		{
			id: "emb_skin5mh8t", title: "Find your skin care", groupID: "grp_care", url: "https://care.example.com/finder",
			share: 20, versions: []int{-60, 5, 64},
			pages: []page{
				{id: "pg_sk01", key: "hello"},
				{id: "pg_sk02", key: "skin", questions: []question{
					choose("skin_type", "Dry", "Oily", "Combination", "Normal", "Not sure"),
					agree("sensitive", 35)}},
				{id: "pg_sk03", key: "goals", questions: []question{
					{name: "goals", answer: func(v *visitor) any {
						return several(v, "Hydration", "Clarity", "Even tone", "Fewer lines")
					}},
					{name: "anything_else", optional: 70, answer: func(v *visitor) any {
						return pick(v, "No perfume, please.", "Prefer something light ☀️", "Ich vertrage kein \"Retinol\".", "Crème à l'aloès ?")
					}}}},
				{id: "pg_sk04", key: "routine", questions: []question{
					number("minutes_a_day", 2, 25, 1),
					{name: "budget", answer: func(v *visitor) any {
						// A price is a decimal with two places.
						return decimal{v.between(800, 9000)}
					}}}},
				{id: "pg_sk05", key: "result"},
				{id: "pg_sk06", key: "contact", questions: contactQuestions()},
			},
		},
	}
}

func customEvents() []customEvent {
	return []customEvent{
		{"extras", "option_selected", func(v *visitor) pairs {
			return pairs{{"option", pick(v, "battery", "wallbox", "heat_pump")}, {"selected", v.rng.IntN(4) > 0}}
		}},
		{"estimate", "estimate_shown", func(v *visitor) pairs {
			return pairs{{"savings_eur_per_year", v.between(180, 2400)}, {"panels", v.between(6, 28)}}
		}},
		{"contact", "form_started", func(v *visitor) pairs { return pairs{{"field", pick(v, "first_name", "email")}} }},
		{"offer", "offer_calculated", func(v *visitor) pairs {
			return pairs{{"rate_percent", decimal{v.between(265, 495)}}, {"years", v.between(2, 7) * 5}}
		}},
		{"property", "map_opened", func(v *visitor) pairs { return pairs{{"zoom", v.between(8, 17)}} }},
		{"result", "product_clicked", func(v *visitor) pairs {
			return pairs{{"sku", "SK-" + strconv.Itoa(100+v.rng.IntN(40))}, {"position", v.between(1, 6)}}
		}},
		{"goals", "hint_opened", func(*visitor) pairs { return pairs{} }},
	}
}

// version returns the number of the version that was live at t.
func (f flow) version(t time.Time) int {
	day := int(t.Sub(End().AddDate(0, 0, -Days)) / (24 * time.Hour))
	n := 1
	for i, live := range f.versions {
		if day >= live {
			n = i + 1
		}
	}
	return n
}
