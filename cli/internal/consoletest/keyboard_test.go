package consoletest

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"
)

// canFocus lists the elements that can have the focus, in the order of the page.
const canFocus = `[...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")]
	.filter(e => e.checkVisibility() && !e.disabled && e.tabIndex >= 0)`

// TestLongTabOrder checks that the tab key reaches every control in the order of the page, and that the focus is
// visible.
func TestLongTabOrder(t *testing.T) {
	t.Parallel()
	w := start(t)
	for _, v := range views(w) {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			b := newTab(t, w)
			b.show(w, v)
			var want, got []string
			for same := false; !same; { // a page that gains a control meanwhile, such as the link to the next entry, is walked again
				b.run(chromedp.Evaluate(`document.body.tabIndex = -1, document.body.focus()`, nil)) // the tab key begins at the start
				// Labels are read now, because a text may still change: the id of an embeddable becomes its name.
				want, got = eval[[]string](b, `window.labels = (window.stops = `+canFocus+`).map((e, i) => i + " " + e.tagName + " " + (e.innerText ?? "").slice(0, 40))`), nil
				for range 3 * len(want) {
					b.press(kb.Tab)
					stop := eval[string](b, `(() => { const e = document.activeElement, style = getComputedStyle(e);
						// A date field has several tab stops inside, which the browser draws.
						const seen = e.type === "date" || style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1;
						return (labels[stops.indexOf(e)] ?? "another element: " + e.outerHTML.slice(0, 80)) + (seen ? "" : " IS NOT SEEN"); })()`)
					if len(got) == 0 || got[len(got)-1] != stop {
						got = append(got, stop)
					}
					if len(got) == len(want) {
						break
					}
				}
				same = eval[bool](b, `(now => now.length === stops.length && now.every((e, i) => e === stops[i]))(`+canFocus+`)`)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestLongShortcuts checks every keyboard shortcut.
func TestLongShortcuts(t *testing.T) {
	t.Parallel()
	w := start(t)
	b := newTab(t, w)
	b.show(w, find(w, "overview"))
	focus := func(what, expression string) {
		t.Helper()
		b.until("the focus is on "+what, `(() => { const e = document.activeElement; return `+expression+`; })()`)
	}

	b.breaks() // no fault, but the browser logs that no entry has the typed id, also while the search has a slash
	b.press(kb.Tab, kb.Enter)
	focus("the page, after the skip link", `e.id === "main"`)
	b.press(kb.Tab, kb.Tab)
	here := eval[string](b, `document.activeElement.outerHTML`)

	for _, tt := range []struct{ key, label string }{{"?", "Keyboard"}, {"/", "Search"}} {
		b.press(tt.key)
		focus("the dialog "+tt.label, `e.closest("dialog")?.ariaLabel === `+quote(tt.label)+` && e !== e.closest("dialog")`)
		b.press(kb.Escape)
		b.until("it is closed", `!document.querySelector("dialog")`)
		focus("where it was before "+tt.label, `e.outerHTML === `+quote(here))
	}

	b.press("/")
	focus("the search", `e.role === "combobox"`)
	// The driver sends a key and its character separately, so the search may receive the slash.
	b.run(chromedp.Evaluate(`document.activeElement.select()`, nil), chromedp.KeyEvent("solar"))
	b.until("an embeddable is found", `document.querySelector("dialog [role=option]") && document.querySelector("dialog").innerText.includes("What would solar save you?")`)
	b.press(kb.ArrowDown, kb.ArrowUp, kb.Enter) // the second offer is the search in answers
	b.until("the embeddable", `document.querySelector("[data-state=counted]") && document.querySelector("h1").innerText === "What would solar save you?"`)
	focus("the page", `e.id === "main"`)
	for _, tt := range [][2]string{{"7", "funnel/" + solar + "?days=7"}, {"v", "embeddables/" + solar + "?days=7"}, {"e", "entries?embeddable=" + solar + "&days=7"}, {"j", "entries?embeddable=" + solar + "&days=7&page=2"}, {"l", "entries?embeddable=" + solar + "&days=last-month"}} {
		// The address changes before the page does, and the page Entries has the key j once it knows that there is a second page.
		b.until("the control of "+tt[0], `document.querySelector("main [aria-keyshortcuts='`+tt[0]+`']")`)
		b.press(tt[0])
		b.until(tt[0]+" leads to "+tt[1], shownAddress+` === `+quote(at(demoProject, tt[1]))+` && !document.querySelector("[data-stale], [data-state=loading]")`)
	}
	b.open(overview)
	b.until("the overview again", find(w, "overview").shown)

	// Search finds experiments by title and by id, and offers an entry or a contact only if it exists.
	entry, err := w.api.Entry(t.Context(), demoProject, w.EntryID)
	if err != nil {
		t.Fatal(err)
	}
	mail := "visitor" + strings.TrimPrefix(entry.ContactID, "con_") + "@example.org"
	b.press("/")
	focus("the search", `e.role === "combobox"`)
	for _, tt := range [][2]string{{"as headline", "Experiment"}, {headline, "Experiment"}, {solar, "Embeddable"}, {w.EntryID, "Entry"}, {entry.ContactID, "Contact"}, {mail, "Contact"}, {"nothing of the kind", "Entries with these words"}} {
		typed, want := tt[0], tt[1]
		b.run(chromedp.Evaluate(`document.activeElement.select()`, nil), chromedp.KeyEvent(typed))
		b.until("what "+typed+" finds", `document.querySelector("[data-search=done]") && document.activeElement.value === `+quote(typed)+` && (document.querySelector("[role=option] .muted")?.innerText ?? "") === `+quote(want))
	}
	b.shows("Nothing has this title or id.")
	b.press(kb.Escape)
	b.until("the search is closed", `!document.querySelector("dialog")`)

	for key, name := range map[string]string{"e": "entries", "b": "embeddables", "x": "experiments", "c": "connect", "o": "overview"} {
		v := find(w, name)
		b.press("g", key)
		b.until(v.name, `document.querySelector("h1")?.innerText === `+quote(v.h1)+` && (`+v.shown+`)`)
		if got, want := b.address(), at(demoProject, v.path); got != want {
			t.Errorf("g %s leads to %s, want %s", key, got, want)
		}
	}

	// In a list, arrow keys choose. The list keeps the focus, and Back undoes each choice.
	b.press("g", "e")
	b.until("the entries", find(w, "entries").shown)
	eval[bool](b, `document.querySelector("select[name=embeddable]").focus() ?? true`)
	b.press(kb.ArrowDown)
	b.until("a choice", `location.search.includes("embeddable=") && document.querySelectorAll("tr[data-entry]").length === 50 && !document.querySelector("[data-stale]")`)
	b.press(kb.ArrowDown)
	focus("the list", `e.name === "embeddable" && e.selectedIndex === 2 && location.search.includes(e.value)`)
	for _, step := range []struct{ to, index string }{{"back", "1"}, {"back", "0"}, {"forward", "1"}, {"forward", "2"}} {
		b.run(chromedp.Evaluate(`setTimeout(() => history.`+step.to+`()); 0`, nil))
		b.until("the choice "+step.index, `((e) => e?.selectedIndex === `+step.index+` && (new URLSearchParams(location.search).get("embeddable") ?? "") === e.value)(document.querySelector("select[name=embeddable]"))`)
	}
	for _, button := range []string{"Columns", "Download"} {
		b.until(button, `[...document.querySelectorAll("button")].some(e => e.innerText === `+quote(button)+` && !e.disabled)`)
		b.run(chromedp.Evaluate(`[...document.querySelectorAll("button")].find(e => e.innerText === `+quote(button)+`).focus()`, nil), chromedp.KeyEvent(kb.Enter))
		focus("the dialog "+button, `e.closest("dialog")?.ariaLabel === `+quote(button))
		eval[bool](b, `document.activeElement.blur() ?? true`)
		b.press("f") // leads to the funnel, but not from within a dialog
		b.press(kb.Escape)
		focus("the button "+button, `e.innerText === `+quote(button))
	}
}
