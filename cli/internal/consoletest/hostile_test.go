package consoletest

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"
)

// Texts that a page without escaping runs as a script, or that change the order of the text around them.
const (
	script = `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>`
	bidi   = "\u202e\u2067abc drow\u2069 \u200f"
)

// TestLongHostile checks that no text of a project can harm the page if an attacker wrote all of them.
func TestLongHostile(t *testing.T) {
	t.Parallel()
	w := start(t)
	const project, embeddable, experiment = "pr_hostile", `em/../?#%2F <i>&"'`, `ex/../?#%2F <i>&"'`
	const title = script + bidi
	w.send(t, "projects", record{"id": project, "title": title, "region": nil})
	w.send(t, "embeddables", record{"embeddable_id": embeddable, "title": title, "group_id": script, "project_id": project, "json_string_prod": quote(script)})
	many := make([]string, 2000)
	for i := range many {
		many[i] = fmt.Sprintf(`"key %d":%d`, i, i)
	}
	datas := []struct{ id, data string }{
		{`script/<i>?#%2F ..`, `{"a":` + quote(script) + `,` + quote(script) + `:"key","url":"javascript:window.hacked=1","html":"<b>bold</b>"}`},
		{"bidi", `{"name":` + quote(bidi) + `}`},
		{"mega", `{"text":"` + strings.Repeat("x", 1_000_000) + `","words":"` + strings.Repeat("lorem ipsum ", 40_000) + `"}`},
		{"number", "12"},
		{"list", "[1,2]"},
		{"null", "null"},
		{"deep", `{"deep":` + strings.Repeat("[", 9_990) + strings.Repeat("]", 9_990) + `,"a":"after"}`},
		{"deepobject", `{"deep":` + strings.Repeat(`{"k":`, 9_990) + "1" + strings.Repeat("}", 9_990) + `}`},
		{"proto", `{"__proto__":{"polluted":true},"constructor":"c","toString":"t","hasOwnProperty":1,"length":3,"0":"zero","":"empty key"}`},
		{"surrogate", `{"a":"\ud800 lone","\udc00":"key","nul":"a\u0000b","esc":"\u0007\/<>&\u2028"}`},
		{"numbers", `{"big":12345678901234567890,"exact":0.10,"exp":1e400,"dup":1,"dup":2}`},
		{"many", `{` + strings.Join(many, ",") + `}`},
	}
	var entries, events []record
	at0 := time.Date(2026, 9, 2, 0, 0, 0, 0, time.UTC)
	for i, d := range datas {
		e := newEntry(project, embeddable, d.id, at0.Add(time.Duration(i)*time.Second), d.data)
		e["contact_id"], e["group_id"] = "con & "+script, script
		entries = append(entries, e)
	}
	for i := range 500 {
		events = append(events, record{"entry_id": datas[0].id, "contact_id": "c", "project_id": project, "group_id": "g", "embeddable_id": embeddable, "embeddable_version_number": 1,
			"timestamp": at0.Add(time.Duration(i) * time.Second).Format(time.RFC3339), "page_id": fmt.Sprint(script, i%7), "page_key": fmt.Sprint(script, i%7), "page_index": i % 7,
			"max_page_id": nil, "max_page_key": nil, "max_page_index": nil, "total_pages": 7, "event_type": "flowpage.viewed", "view_type": "flowpage", "custom_event_name": nil, "custom_event_props": nil})
	}
	events[3]["event_type"], events[3]["custom_event_name"], events[3]["custom_event_props"] = "custom_event:triggered", script, datas[6].data
	w.send(t, "entries", entries...)
	w.send(t, "events", events...)
	w.send(t, "embeddable-versions",
		record{"embeddable_id": embeddable, "project_id": project, "version_number": 1, "saved_at": "2026-09-01T08:00:00Z", "json_string": `{"a":` + quote(script) + `,"deep":` + strings.Repeat("[", 9_990) + strings.Repeat("]", 9_990) + `}`},
		record{"embeddable_id": embeddable, "project_id": project, "version_number": 2, "saved_at": "2026-09-02T08:00:00Z", "json_string": `{"__proto__":` + quote(bidi) + `,"long":"` + strings.Repeat("y", 1_000_000) + `"}`})
	w.send(t, "experiments", record{"project_id": project, "id": experiment, "experimentId": experiment, "flowId": embeddable, "name": title, "hypothesis": script,
		"impact_metrics": []string{script}, "no_impact_metrics": []string{bidi}, "created_at": "2026-09-01T08:00:00Z", "updated_at": "2026-09-02T08:00:00Z", "observations": bidi, "outcome": script,
		"attachments": `[{"name":` + quote(script) + `,"url":"javascript:window.hacked=1"},null,7]`, "variants": `{"__proto__":{"name":` + quote(script) + `},"constructor":[1]}`,
		"flow_ids": []string{embeddable}, "paused_showing_variant": nil, "winner_variant": "__proto__", "status": "running"})
	key := w.mint(t, project)

	b := newTab(t, w)
	b.signIn(project, key, at(project, "overview"))
	const frozen = 60_000 // milliseconds without a reaction, on a busy machine
	unharmed := func(where string) {
		t.Helper()
		if eval[bool](b, `"hacked" in window || "polluted" in {} || !!document.querySelector("#app bdi *, #app script, #app img")`) {
			t.Errorf("%s: a text of the data became a part of the page", where)
		}
		if took := eval[float64](b, `longest`); took > frozen {
			t.Errorf("%s: the page did not react for %.0f ms", where, took)
		}
		b.fits(where)
	}
	b.until("the overview", `document.querySelector("[data-figure=entries]")?.innerText === "`+quoteInt(len(datas))+`" && document.querySelector("[aria-labelledby=running] li")`)
	b.shows("<script>window.hacked=1</script>")
	unharmed("overview")

	b.open(at(project, "entries?"+url.Values{"embeddable": {embeddable}}.Encode()))
	b.rows(len(datas))
	b.clickText("Columns")
	b.until("many names", `document.querySelectorAll("dialog li").length > 900`)
	unharmed("entries")
	for _, d := range datas {
		b.open(at(project, "entries/"+url.PathEscape(d.id)))
		b.until("entry "+d.id, `document.querySelector(".pagehead code")?.innerText === `+quote(d.id)+` && document.querySelector("[data-answers]") && document.querySelector("[data-events]")`)
		isObject := d.data[0] == '{'
		if shown := eval[int](b, `Number(document.querySelector("[data-answers]").dataset.answers)`); (shown >= 0) != isObject || shown == 0 {
			t.Errorf("%s: %d answers", d.id, shown)
		}
		unharmed("entry " + d.id)
		if isObject {
			b.clickText("Raw JSON")
			b.until("raw", `document.querySelector("[data-answers] pre")?.innerText.length > 5`)
			unharmed("entry " + d.id + ", raw")
		}
	}
	for _, tt := range []struct{ where, path, shown string }{
		{"entries of an embeddable", "entries?" + url.Values{"embeddable": {embeddable}, "contact": {"con & " + script}, "group": {script}}.Encode(), `document.querySelectorAll("tr[data-entry]").length === ` + quoteInt(len(datas))},
		{"contact", "contacts/" + url.PathEscape("con & "+script), `document.querySelectorAll(".timeline > li").length === ` + quoteInt(len(datas))},
		{"answers", "answers/" + url.PathEscape(embeddable), `document.querySelector("[data-answered]")`},
		{"funnel", "funnel/" + url.PathEscape(embeddable), `document.querySelector("[data-state=counted]") && document.querySelectorAll("table.funnel tbody tr").length === 7`},
		{"embeddables", "embeddables", `document.querySelector("main tbody tr")`},
		{"embeddable", "embeddables/" + url.PathEscape(embeddable), `document.querySelector("[data-added]")`},
		{"definition", "embeddables/" + url.PathEscape(embeddable) + "?compare=-&with=1", `document.querySelector(".line")`},
		{"experiments", "experiments", `document.querySelector("main tbody tr")`},
		{"experiment", "experiments/" + url.PathEscape(experiment), `document.querySelector(".history li") && document.querySelectorAll("table.variants tbody tr").length === 2`},
		{"connect", "connect", `document.querySelector("[data-figure=remaining]")`},
		{"an id that is none", "entries/" + url.PathEscape(script+"%zz/../"), `document.querySelector("[data-state='404']")`},
	} {
		if tt.where == "an id that is none" {
			b.breaks() // no fault, but the browser logs the 404
		}
		b.open(at(project, tt.path))
		b.until(tt.where, tt.shown)
		unharmed(tt.where)
		if links := eval[int](b, `[...document.querySelectorAll("a[href]")].filter(a => !["http:", "https:"].includes(a.protocol)).length`); links > 0 {
			t.Errorf("%s: %d links go elsewhere", tt.where, links)
		}
	}
	// Links with such ids lead to the right pages.
	b.open(at(project, "embeddables"))
	b.click("main tbody a[href*='entries?']")
	b.rows(len(datas))
	b.open(at(project, "experiments"))
	b.click("main tbody a")
	b.until("the experiment", `document.querySelector(".history li")`)
	b.click("main .names a")
	b.until("the embeddable", `document.querySelector("[data-state=counted]")`)
}

// TestLongHostileAnswers sends the page answers that no service of the platform sends.
func TestLongHostileAnswers(t *testing.T) {
	t.Parallel()
	w := start(t)
	b := newTab(t, w)
	record, err := json.Marshal(newEntry(demoProject, solar, "en_1", time.Now(), "{"))
	if err != nil {
		t.Fatal(err)
	}
	b.breaks(&fault{part: "/entries", serve: answerWith("application/x-ndjson", string(record)+"\n")})
	b.signIn(demoProject, w.APIKey, at(demoProject, "entries"))
	b.rows(1)
	for _, body := range []string{"{\n", "<html>\n", strings.Repeat("[", 100_000) + "\n"} {
		b.breaks(&fault{part: "/", serve: answerWith("application/x-ndjson", body)})
		b.open(at(demoProject, "entries"))
		b.until("a state of "+body[:min(10, len(body))], `document.querySelector("main [data-state]:not([data-state=loading])")`)
	}
}
