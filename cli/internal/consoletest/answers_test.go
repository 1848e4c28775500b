package consoletest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"
)

// given returns the rows of the first table of a question, each in one line.
func (b *tab) given(key string) []string {
	b.Helper()
	return eval[[]string](b, `[...document.querySelector("section[data-key=`+key+`] table").querySelectorAll("tbody tr")].map(e => e.innerText.replace(/\s+/g, " ").trim())`)
}

// TestLongAnswers shows choices, several choices, numbers and free texts on one page, which asks one question. Titles and order are
// those of the definition.
func TestLongAnswers(t *testing.T) {
	t.Parallel()
	w := start(t)
	const project, embeddable = "pr_answers", "em_answers"
	key := w.newProject(t, project, "Answers", "")
	w.send(t, "embeddables", record{"embeddable_id": embeddable, "title": "A short questionnaire", "group_id": "gr_1", "project_id": project,
		"json_string_prod": `{"pages":[{"key":"first","components":[{"name":"several","label":"Which ones?"},{"name":"colour","label":"Which colour?","options":[{"value":"green","label":"Leaf green"}]}]}]}`})
	var entries []record
	for i := range 60 {
		comment := "null"
		if i < 30 {
			comment = fmt.Sprintf(`"comment %d"`, i)
		}
		entries = append(entries, newEntry(project, embeddable, fmt.Sprint("en_", i), demoEnd.AddDate(0, 0, -i), fmt.Sprintf(`{"colour":%q,"age":%d,"kwh":%d,"comment":%s,"several":%s}`,
			[]string{"red", "red", "blue", "green"}[i%4], 20+i%40, 1000+10*i, comment, []string{`["a","b"]`, `["a","a",null]`, `[]`, `null`}[i%4])))
	}
	entries = append(entries, newEntry(project, embeddable, "en_none", demoEnd, `{"several":" "}`))
	w.send(t, "entries", entries...)
	b := newTab(t, w)
	b.signIn(project, key, at(project, "embeddables?days=0"))
	b.clickText("A short questionnaire")
	b.until("the funnel", `document.querySelector("[data-state=counted]")`)
	before := len(b.seen())
	b.press("a")
	b.until("the answers", `document.querySelector("[data-answered]")`)
	if diff := cmp.Diff([]string{"Which ones? several", "Which colour? colour", "age", "comment", "kwh"}, b.texts("section[data-key] h2")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"Of 30 entries, several each. 31 gave no answer.", "Of 60 entries. 1 gave no answer.", "Of 60 entries. 1 gave no answer.", "Of 30 entries. 31 gave no answer.", "Of 60 entries. 1 gave no answer."}, b.texts("[data-answered]")); diff != "" {
		t.Error(diff)
	}
	const each = " 10 16.7 %"
	for question, want := range map[string][]string{
		"several": {"a 30 100.0 %", "b 15 50.0 %"},
		"colour":  {"red 30 50.0 %", "blue 15 25.0 %", "Leaf green green 15 25.0 %"},
		"age":     {"20 to 24" + each, "25 to 29" + each, "30 to 34" + each, "35 to 39" + each, "40 to 44 5 8.3 %", "45 to 49 5 8.3 %", "50 to 54 5 8.3 %", "55 to 59 5 8.3 %"},
	} {
		if diff := cmp.Diff(want, b.given(question)); diff != "" {
			t.Errorf("%s: %s", question, diff)
		}
	}
	// There are more numbers than the API lists, but it counts all of them in ranges.
	if got := b.given("kwh"); len(got) != 6 || got[0] != "1,000 to under 1,100"+each || got[5] != "1,500 to under 1,600"+each {
		t.Errorf("the ranges are %q", got)
	}
	b.shows("The 50 most frequent numbers")
	if got := b.text("section[data-key=age] p:not(.muted)"); got != "Median 34.5, half of them from 27 to 44.25, all from 20 to 59." {
		t.Error(got)
	}

	// Free texts are read once the visitor opens them.
	asked := func(part string) (n int) {
		for _, r := range b.seen()[before:] {
			if strings.Contains(r.URL.RequestURI(), part) {
				n++
			}
		}
		return n
	}
	if answers, lists := asked("/entries-answers?"), asked("/entries?"); answers != 1 || lists != 0 {
		t.Errorf("the page asked for answers %d times, and for entries %d times", answers, lists)
	}
	b.clickText("The latest answers")
	b.until("twenty texts", `document.querySelectorAll("section[data-key=comment] tbody tr").length === 20`)
	if got := b.given("comment")[0]; !strings.HasPrefix(got, "comment 0 ") {
		t.Errorf("the latest comment is %q", got)
	}
	b.click("section[data-key=comment] input")
	b.run(chromedp.KeyEvent("comment 19\r"))
	b.until("the entry with this comment", `document.querySelectorAll("tr[data-entry]").length === 1 && location.search.includes("search=comment+19") && location.search.includes("days=0")`)
	b.until("a column with the title of its question, and the text of the choice", `[...document.querySelectorAll("thead th")].some(e => e.innerText === "Which colour?") && document.querySelector("td[data-name='Which colour?']").innerText === "Leaf green"`)
	b.clickText("Columns")
	b.until("the title in the choice of columns", `[...document.querySelectorAll("dialog li")].some(e => e.innerText.includes("Which colour?"))`)
	b.clickText("Done")
	b.run(chromedp.NavigateBack())

	// Each number in a range opens its entries.
	b.clickText("Each number")
	b.click("section[data-key=age] details tbody a")
	b.until("those of 20", `document.querySelectorAll("tr[data-entry]").length === 2 && document.querySelector(".chip")?.innerText.startsWith("age: 20")`)

	// The list of questions, and an address, lead to a question.
	b.run(chromedp.NavigateBack())
	b.click("a[href*='key=kwh']")
	const shown = `document.activeElement.innerText === "kwh" && document.activeElement.getBoundingClientRect().top < innerHeight && !location.search.includes("key=")`
	b.until("the question", shown)
	b.open(at(project, "answers/"+embeddable+"?days=0&key=kwh"))
	b.until("the question of the address", shown)

	// In a period, each share has its change against the period before.
	b.open(at(project, fmt.Sprintf("answers/%s?from=%s&to=%s&tz=UTC", embeddable, demoEnd.AddDate(0, 0, -25).Format(time.DateOnly), demoEnd.AddDate(0, 0, -20).Format(time.DateOnly))))
	b.shows("6 entries, +0 against the 6 days before.")
	b.shows("No share of an answer changed by more than chance explains.")
	if diff := cmp.Diff([]string{"red 4 66.7 % +33.3 points", "blue 1 16.7 % −16.7 points", "Leaf green green 1 16.7 % −16.7 points"}, b.given("colour")); diff != "" {
		t.Error(diff)
	}

	// If the period before cannot be counted, the page says why, and has the answers of the period.
	tooLong := refusal(http.StatusUnprocessableEntity, "question_too_large")
	b.breaks(&fault{part: "/entries-answers", serve: func(w http.ResponseWriter, r *http.Request, run http.Handler) {
		if strings.HasPrefix(r.URL.Query().Get("created_before"), demoEnd.AddDate(0, 0, -25).Format(time.DateOnly)) {
			tooLong(w, r, run)
			return
		}
		run.ServeHTTP(w, r)
	}})
	b.run(chromedp.Reload())
	b.until("why nothing is compared", `document.querySelector("[aria-labelledby=changed] [data-state=slow]")?.innerText.includes("Refused by the test.")`)
	if diff := cmp.Diff([]string{"red 4 66.7 %", "blue 1 16.7 %", "Leaf green green 1 16.7 %"}, b.given("colour")); diff != "" {
		t.Error(diff)
	}
	b.breaks()
	b.clickText("Try again")
	b.shows("6 entries, +0 against the 6 days before.")

	// The answers to a question over time: red was given on four of the six days.
	b.click("section[data-key=colour] details summary")
	b.until("the chart", `document.querySelectorAll("section[data-key=colour] .chart svg a").length === 6`)
	if got := eval[int](b, `[...document.querySelectorAll("section[data-key=colour] .chart svg a")].filter(e => e.ariaLabel.endsWith(": 1")).length`); got != 4 {
		t.Errorf("the chart has red on %d days, want 4", got)
	}

	// An entry and its contact have the titles and the texts of choices, too.
	for _, path := range []string{"entries/en_3", "contacts/co_1"} {
		b.open(at(project, path))
		b.until("titles of "+path, `[...document.querySelectorAll("dl.answers dt")].some(e => e.innerText === "Which colour? colour" && e.nextElementSibling.innerText === "Leaf green green")`)
	}
}

// TestLongManyQuestions finds one of 80 questions: by its title, and in the list of all. Names and phones are never figures.
func TestLongManyQuestions(t *testing.T) {
	t.Parallel()
	w := start(t)
	const project, embeddable = "pr_many", "em_many"
	key := w.newProject(t, project, "Many", "")
	var components, answers []string
	for i := range 80 {
		components = append(components, fmt.Sprintf(`{"name":"q%02d","label":"What about subject %d?"}`, i, i))
		answers = append(answers, fmt.Sprintf(`"q%02d":"Yes"`, i))
	}
	w.send(t, "embeddables", record{"embeddable_id": embeddable, "title": "A long questionnaire", "group_id": "gr_1", "project_id": project,
		"json_string_prod": `{"pages":[{"key":"first","components":[` + strings.Join(components, ",") + `,{"name":"who","label":"Your first name"}]}]}`})
	var entries []record
	for i := range 48 {
		entries = append(entries, newEntry(project, embeddable, fmt.Sprint("en_", i), demoEnd.AddDate(0, 0, -i), fmt.Sprintf(`{%s,"who":"Name %d","contactPhone":%d}`, strings.Join(answers, ","), i%12, 5550100+i%12)))
	}
	w.send(t, "entries", entries...)
	b := newTab(t, w)
	b.signIn(project, key, at(project, "answers/"+embeddable+"?days=0"))
	b.until("the first questions", `document.querySelectorAll("section[data-key]").length === 30 && document.querySelectorAll("nav .keylist li").length === 82`)
	for _, width := range []int64{390, 1280} {
		b.look(width, "light")
		b.fits(fmt.Sprint("many questions at ", width))
		b.picture(fmt.Sprint("many-questions-", width))
		b.until("all pages of the navigation", `[...document.querySelectorAll(".side li a")].filter(e => e.getBoundingClientRect().right <= innerWidth).length === 5`)
	}
	b.click("a[href*='key=q77']")
	b.until("a question further down", `document.activeElement.innerText.startsWith("What about subject 77?") && document.activeElement.getBoundingClientRect().top < innerHeight && !location.search.includes("key=")`)
	b.click("main input[type=search]")
	b.run(chromedp.KeyEvent("FIRST"))
	b.until("the question of this title", `[...document.querySelectorAll("section[data-key]")].map(e => e.dataset.key).join() === "who" && document.querySelectorAll("nav .keylist li").length === 1`)
	b.until("texts", `document.querySelector("[data-key=who] [data-kind=texts]") && document.querySelector("[data-key=who] summary").innerText === "The latest answers"`)
	b.run(chromedp.Evaluate(`document.activeElement.select()`, nil), chromedp.KeyEvent("phone"))
	b.until("phones as texts, too", `document.querySelector("[data-key=contactPhone] [data-kind=texts]")`)
	b.clickText("The latest answers")
	b.until("the latest phone", `document.querySelector("[data-key=contactPhone] tbody tr")?.innerText.startsWith("5550100")`)
}
