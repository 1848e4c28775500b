package consoletest

import (
	"net/url"
)

// view is one kind of page of the console, over the demo project.
type view struct {
	name string
	path string // the part of the address after the project
	h1   string
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
	return []view{
		{"overview", "overview", "Overview",
			`document.querySelector("[data-figure=total]") && !document.querySelector("main").innerText.includes("read so far") && document.querySelector("[aria-labelledby=running] li")`, isEmpty},
		{"entries", "entries", "Entries", // the button for columns works once the answers are counted
			`document.querySelector("main [role=grid][data-rows='10000']") && document.querySelector("main [data-state=done]") && [...document.querySelectorAll("main button")].some(e => e.innerText === "Columns" && !e.disabled)`, isEmpty},
		{"entry", "entries/" + url.PathEscape(w.EntryID), w.EntryID, `document.querySelector("[data-answers]") && document.querySelector("[data-events]")`, isMissing},
		{"funnels", "funnel", "Funnel", `document.querySelectorAll("main li a").length === 3`, isEmpty},
		{"funnel", "funnel/" + solar, "What would solar save you?", `document.querySelector("[data-state=counted]")`, isEmpty},
		{"embeddables", "embeddables", "Embeddables", `document.querySelectorAll("main tbody tr").length === 3`, isEmpty},
		{"embeddable", "embeddables/" + solar, "What would solar save you?", `document.querySelector("[data-added]") && document.querySelector("[aria-labelledby=versions] tbody tr")`, isMissing},
		{"experiments", "experiments", "Experiments", `document.querySelectorAll("main .rows li").length === 8`, isEmpty},
		{"experiment", "experiments/" + headline, "A question as headline", `document.querySelector("main .history li")`, isMissing},
		{"connect", "connect", "Connect", `document.querySelector("[data-figure=remaining]")`, `document.querySelector("[data-figure=remaining]")`},
	}
}

func at(project, path string) string { return "/console/p/" + url.PathEscape(project) + "/" + path }

// show opens a page of the demo project with a link that signs in, and waits until it is complete.
func (b *tab) show(w *world, v view) {
	b.Helper()
	b.signIn(demoProject, w.APIKey, at(demoProject, v.path))
	b.until(v.name+" is shown", v.shown)
}
