package demo

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// question is a component of a page in a definition. A component without a name asks nothing, such as a headline. The
// answer becomes a field of the entry's data.
type question struct {
	Name     string
	Type     string
	Options  []string
	Min, Max int
	Step     json.Number
}

// ticked has the percentage of visitors that tick a checkbox. unanswered has the percentage of visitors that do not answer
// a question, so that the field is null. All visitors answer the other questions.
var (
	ticked     = map[string]int{"owner": 81, "newsletter": 38, "documents_ready": 54, "sensitive": 35}
	unanswered = map[string]int{"yearly_kwh": 30, "phone": 45, "anything_else": 70}
)

// visitor is the contact of one entry, with the random generator of the contact's choices.
type visitor struct {
	rng         *rand.Rand
	first, last string
	contactID   string
}

// newVisitor returns a random one of 7,000 contacts, so that some contacts have more than one entry. The name of a
// contact is always the same.
func newVisitor(rng *rand.Rand) *visitor {
	n := rng.IntN(7000)
	own := rand.New(rand.NewPCG(seed, 1<<40+uint64(n))) // the same contact always has the same name
	v := &visitor{rng: own, contactID: "con_" + strconv.Itoa(10000+n)}
	v.first = v.pick("Ada", "Björn", "Chloé", "Dmitri", "Elif", "Farah", "Grace", "Hugo", "Ines", "Jürgen",
		"Kofi", "Lucía", "Mei", "Noah", "Olga", "Priya", "Quentin", "Rosa", "Søren", "Tomás", "Uma", "Wanjiru", "Yuki", "Zoë")
	v.last = v.pick("Andersen", "Bauer", "Castillo", "Dubois", "Eriksson", "Ferrari", "García", "Haddad", "Ivanova",
		"Jansen", "Kowalska", "Larsson", "Müller", "Nakamura", "O'Brien", "Papadopoulos", "Quinn", "Rossi", "Şahin", "Tanaka", "Weber")
	v.rng = rng
	return v
}

// pick returns one of choices at random. All choices have the same probability.
func (v *visitor) pick(choices ...string) string { return choices[v.rng.IntN(len(choices))] }

// between returns a random number from low to high, both included. Numbers in the middle are more likely.
func (v *visitor) between(low, high int) int {
	width := high - low + 1
	return low + (v.rng.IntN(width)+v.rng.IntN(width))/2
}

// answers returns the visitor's answers as JSON: those on the pages before the furthest page. The answers on the
// furthest page are included if the visitor left the page, and otherwise with a probability of one half.
func (v *visitor) answers(pages []page, furthest, here int) string {
	var fields []string
	for i, p := range pages {
		if i > furthest || i == furthest && i == here && v.rng.IntN(2) == 0 {
			break
		}
		for _, q := range p.Components {
			if q.Name == "" {
				continue
			}
			answer := v.answer(q)
			if v.rng.IntN(100) < unanswered[q.Name] {
				answer = nil
			}
			b, _ := json.Marshal(answer) // never fails: answer is a string, a number, a boolean or a list of strings
			fields = append(fields, strconv.Quote(q.Name)+":"+string(b))
		}
	}
	return "{" + strings.Join(fields, ",") + "}"
}

func (v *visitor) answer(q question) any {
	switch q.Type {
	case "single_choice":
		return v.pick(q.Options...)
	case "multiple_choice":
		chosen := []string{}
		for _, c := range q.Options {
			if v.rng.IntN(100) < 40 {
				chosen = append(chosen, c)
			}
		}
		return chosen
	case "checkbox":
		return v.rng.IntN(100) < ticked[q.Name]
	case "number":
		step, err := strconv.Atoi(q.Step.String())
		if err != nil { // the step of a price is 0.01
			return json.Number(price(v.between(q.Min*100, q.Max*100)))
		}
		return v.between(q.Min, q.Max) / step * step
	}
	switch q.Name {
	case "first_name":
		return v.first
	case "last_name":
		return v.last
	case "email":
		return "visitor" + v.contactID[len("con_"):] + "@" + v.pick("example.com", "example.net", "example.org")
	case "phone":
		return "+1 555 01" + strconv.Itoa(10+v.rng.IntN(90))
	case "postcode":
		return "0" + strconv.Itoa(1000+v.rng.IntN(9000))
	}
	return v.pick("No perfume, please.", "Prefer something light ☀️", "Ich vertrage kein \"Retinol\".", "Crème à l'aloès ?")
}

// props returns the properties of a custom event as JSON.
func (v *visitor) props(event string) string {
	switch event {
	case "option_selected":
		return fmt.Sprintf(`{"option":%q,"selected":%t}`, v.pick("battery", "wallbox", "heat_pump"), v.rng.IntN(4) > 0)
	case "estimate_shown":
		return fmt.Sprintf(`{"savings_eur_per_year":%d,"panels":%d}`, v.between(180, 2400), v.between(6, 28))
	case "form_started":
		return fmt.Sprintf(`{"field":%q}`, v.pick("first_name", "email"))
	case "offer_calculated":
		return fmt.Sprintf(`{"rate_percent":%s,"years":%d}`, price(v.between(265, 495)), v.between(2, 7)*5)
	case "map_opened":
		return fmt.Sprintf(`{"zoom":%d}`, v.between(8, 17))
	case "product_clicked":
		return fmt.Sprintf(`{"sku":"SK-%d","position":%d}`, 100+v.rng.IntN(40), v.between(1, 6))
	}
	return "{}"
}

// price returns hundredths as a number with two decimal places.
func price(hundredths int) string { return fmt.Sprintf("%d.%02d", hundredths/100, hundredths%100) }
