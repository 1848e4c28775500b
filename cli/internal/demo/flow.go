package demo

import (
	"math/rand/v2"
	"strconv"
	"time"
)

// flow is an embeddable of the demo project: a sequence of pages with questions for a visitor.
type flow struct {
	id       string
	title    string
	groupID  string
	url      string
	share    int       // percentage of the entries
	releases []release // the one at index i is version i+1
	pages    []page
}

// release is a version of a flow with its look. All versions of a flow have the same pages and questions.
type release struct {
	day      int // from the first of the project's days
	note     string
	headline string
	accent   string // a colour
	progress bool   // shows the visitor's progress
	button   string // text of the button to the next page
}

// page is one page of a flow with its questions. key identifies the page in events.
type page struct {
	id, key   string
	title     string
	questions []question
}

// question is one question of a page. The answer becomes a field of the entry's data, with the name in name.
type question struct {
	name  string
	label string
	// input describes the input element, in the form of the flow's definition.
	input  pairs
	answer func(v *visitor) any
	// optional is the percentage of visitors who give no answer. Their answer is null.
	optional int
}

// customEvent is an event that a page reports in addition to its view.
type customEvent struct {
	page  string // the key of its page
	name  string
	props func(v *visitor) pairs
}

// pairs is a JSON object whose fields keep the order of the slice.
type pairs []pair

type pair struct {
	name  string
	value any
}

// visitor is the contact of one entry, with the random generator of the contact's choices.
type visitor struct {
	rng         *rand.Rand
	first, last string
	contactID   string
}

// pick returns one of choices at random. All choices have the same probability.
func pick[T any](v *visitor, choices ...T) T { return choices[v.rng.IntN(len(choices))] }

// between returns a random number from low to high, both included. Numbers in the middle are more likely.
func (v *visitor) between(low, high int) int {
	width := high - low + 1
	return low + (v.rng.IntN(width)+v.rng.IntN(width))/2
}

// choose returns a question of which the visitor selects exactly one of choices.
func choose(name, label string, choices ...string) question {
	return question{
		name: name, label: label, input: pairs{{"type", "single_choice"}, {"options", choices}},
		answer: func(v *visitor) any { return pick(v, choices...) },
	}
}

// chooseSeveral returns a question of which the visitor selects any number of choices, including none.
func chooseSeveral(name, label string, choices ...string) question {
	return question{
		name: name, label: label, input: pairs{{"type", "multiple_choice"}, {"options", choices}},
		answer: func(v *visitor) any { return several(v, choices...) },
	}
}

// number returns a question for a whole number from low to high. The answers are multiples of step.
func number(name, label string, low, high, step int) question {
	return question{
		name: name, label: label, input: numberInput(low, high, step),
		answer: func(v *visitor) any { return v.between(low, high) / step * step },
	}
}

func numberInput(low, high, step int) pairs {
	return pairs{{"type", "number"}, {"min", low}, {"max", high}, {"step", step}}
}

// agree returns a question for yes or no. yes is the percentage of visitors who answer yes.
func agree(name, label string, yes int) question {
	return question{
		name: name, label: label, input: pairs{{"type", "checkbox"}},
		answer: func(v *visitor) any { return v.rng.IntN(100) < yes },
	}
}

// write returns a question for free text. kind is the type of the input element, such as email.
func write(name, label, kind string, answer func(v *visitor) any) question {
	return question{name: name, label: label, input: pairs{{"type", kind}}, answer: answer}
}

// unanswered returns a copy of q that the given percentage of visitors does not answer.
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

// version returns the number, from 1, of the version that was live at t. version returns 1 for a time before all
// releases.
func (f flow) version(t time.Time) int {
	n := 1
	for i, r := range f.releases {
		if !t.Before(r.live()) {
			n = i + 1
		}
	}
	return n
}

// live returns the time at which the release went live, which is midnight in UTC.
func (r release) live() time.Time { return End().AddDate(0, 0, r.day-Days) }
