package consoletest

import (
	"context"
	"net/url"
)

// view is one kind of page of the console, over the demo project.
type view struct {
	name string
	path string // the part of the address after the project
	h1   string // "" if it is from the data
	// shown is an expression that is true once the page shows all of its data.
	shown string
	// empty is an expression that is true on the same page of an empty project.
	empty string
}

// An embeddable and an experiment of the demo project.
const (
	solar    = "emb_solar7kq2"
	headline = "exp_headline8rk"
)

// views returns every kind of page.
func views(w *world) []view {
	const isEmpty, isMissing = `document.querySelector("main [data-state=empty]")`, `document.querySelector("main [data-state='404']")`
	contact := "unknown" // the page then says so
	if entry, err := w.api.Entry(context.Background(), demoProject, w.EntryID); err == nil {
		contact = entry.ContactID
	}
	return []view{
		{"overview", "overview", "Overview",
			`document.querySelector("[data-figure=drop]")?.innerText.includes("%") && document.querySelector("[aria-labelledby=running] li") && document.querySelector("[aria-labelledby=latest] li")`, isEmpty},
		{"entries", "entries", "Entries", `document.querySelectorAll("tr[data-entry]").length === 50 && document.querySelector("[data-total='10000']")`, isEmpty},
		{"entry", "entries/" + url.PathEscape(w.EntryID), "", `document.querySelector("[data-answers]") && document.querySelector("[data-events]")`, isMissing},
		{"contact", "contacts/" + url.PathEscape(contact), "", `document.querySelector(".timeline li")`, isEmpty},
		{"funnel", "funnel/" + solar, "What would solar save you?", `document.querySelector("[data-state=counted]")`, isEmpty},
		{"answers", "answers/" + solar, "What would solar save you?", `document.querySelector("[data-answered]")`, isEmpty},
		{"embeddables", "embeddables", "Embeddables", `document.querySelectorAll("main tbody tr").length === 3 && document.querySelector("main tbody td.number") && document.querySelector("main .trend")`, isEmpty},
		{"embeddable", "embeddables/" + solar, "What would solar save you?", `document.querySelector("[data-added]") && document.querySelector("[aria-labelledby=versions] tbody tr")`, isMissing},
		{"experiments", "experiments", "Experiments", `document.querySelectorAll("main tbody tr").length === 8`, isEmpty},
		{"experiment", "experiments/" + headline, "A question as headline", `document.querySelector("main .history li") && document.querySelector("table.results td")`, isMissing},
		{"connect", "connect", "Connect", `document.querySelector("[data-figure=remaining]") && document.querySelector("[data-newest]")`, `document.querySelector("[data-figure=remaining]") && document.querySelector("[data-newest='']")`},
	}
}

// find returns the view with a name.
func find(w *world, name string) view {
	for _, v := range views(w) {
		if v.name == name {
			return v
		}
	}
	panic("no view " + name)
}

func at(project, path string) string { return "/console/p/" + url.PathEscape(project) + "/" + path }

// show opens a page of the demo project with a link that signs in, and waits until it is complete.
func (b *tab) show(w *world, v view) {
	b.Helper()
	b.signIn(demoProject, w.APIKey, at(demoProject, v.path))
	b.until(v.name+" is shown", v.shown)
}
