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
	share    int       // of 100 entries, how many are of this flow
	releases []release // the one at index i is version i+1
	pages    []page
}

// release is a version of a flow that went live, and what it looked like. The pages and their questions
// are the same in all versions.
type release struct {
	day      int // from the first of the project's days
	note     string
	headline string
	accent   string // a colour
	progress bool   // shows how far the visitor is
	button   string // what leads on
}

// page is one page of a flow, and what it asks.
type page struct {
	id, key   string
	title     string
	questions []question
}

// question is one answer that a page leaves in the entry's data.
type question struct {
	name  string
	label string
	// input is how the page asks, as the flow's definition says it.
	input  pairs
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
func choose(name, label string, choices ...string) question {
	return question{
		name: name, label: label, input: pairs{{"type", "single_choice"}, {"options", choices}},
		answer: func(v *visitor) any { return pick(v, choices...) },
	}
}

// chooseSeveral makes a question of any number of choices.
func chooseSeveral(name, label string, choices ...string) question {
	return question{
		name: name, label: label, input: pairs{{"type", "multiple_choice"}, {"options", choices}},
		answer: func(v *visitor) any { return several(v, choices...) },
	}
}

// number makes a question of a whole number, a multiple of step.
func number(name, label string, low, high, step int) question {
	return question{
		name: name, label: label, input: numberInput(low, high, step),
		answer: func(v *visitor) any { return v.between(low, high) / step * step },
	}
}

func numberInput(low, high, step int) pairs {
	return pairs{{"type", "number"}, {"min", low}, {"max", high}, {"step", step}}
}

// agree makes a question of yes and no; yes is out of 100 how often the answer is yes.
func agree(name, label string, yes int) question {
	return question{
		name: name, label: label, input: pairs{{"type", "checkbox"}},
		answer: func(v *visitor) any { return v.rng.IntN(100) < yes },
	}
}

// write makes a question of free text; kind is the type of its input.
func write(name, label, kind string, answer func(v *visitor) any) question {
	return question{name: name, label: label, input: pairs{{"type", kind}}, answer: answer}
}

// unanswered lets a question stay unanswered so often out of 100.
func (q question) unanswered(often int) question {
	q.optional = often
	return q
}

func contactQuestions() []question {
	return []question{
		write("first_name", "First name", "text", func(v *visitor) any { return v.first }),
		write("last_name", "Last name", "text", func(v *visitor) any { return v.last }),
		write("email", "Email", "email", func(v *visitor) any {
			return "visitor" + v.contactID[len("con_"):] + "@" + pick(v, "example.com", "example.net", "example.org")
		}),
		write("phone", "Phone, if you like to be called", "phone", func(v *visitor) any {
			return "+1 555 01" + strconv.Itoa(10+v.rng.IntN(90))
		}).unanswered(45),
		agree("newsletter", "Send me news now and then", 38),
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

// version returns the number of the version that was live at t.
func (f flow) version(t time.Time) int {
	n := 1
	for i, r := range f.releases {
		if !t.Before(r.live()) {
			n = i + 1
		}
	}
	return n
}

// live returns when the release went live.
func (r release) live() time.Time { return End().AddDate(0, 0, r.day-Days) }
