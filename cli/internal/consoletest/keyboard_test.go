package consoletest

import (
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
	long(t)
	t.Parallel()
	w := start(t)
	for _, v := range views(w) {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			b := newTab(t, w)
			b.show(w, v)
			// Labels are read now, because a text may still change: the id of an embeddable becomes its name.
			want := eval[[]string](b, `window.labels = (window.stops = `+canFocus+`).map((e, i) => i + " " + e.tagName + " " + e.innerText.slice(0, 40))`)
			var got []string
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
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestShortcuts checks every keyboard shortcut.
func TestShortcuts(t *testing.T) {
	t.Parallel()
	w := start(t)
	b := newTab(t, w)
	all := views(w)
	b.show(w, all[0])
	focus := func(what, expression string) {
		t.Helper()
		b.until("the focus is on "+what, `(() => { const e = document.activeElement; return `+expression+`; })()`)
	}

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
	b.until("an embeddable is found", `document.querySelectorAll("dialog [role=option]").length >= 2 && document.querySelector("dialog").innerText.includes("What would solar save you?")`)
	b.press(kb.ArrowDown, kb.Enter)
	b.until("the embeddable", `document.querySelector("[data-added]") && document.querySelector("h1").innerText === "What would solar save you?"`)
	focus("the page", `e.id === "main"`)

	for key, v := range map[string]view{"e": all[1], "f": all[3], "b": all[5], "x": all[7], "c": all[9], "o": all[0]} {
		b.press("g", key)
		b.until(v.name, `document.querySelector("h1")?.innerText === `+quote(v.h1)+` && (`+v.shown+`)`)
		if got, want := b.address(), at(demoProject, v.path); got != want {
			t.Errorf("g %s leads to %s, want %s", key, got, want)
		}
	}

	// In a text field, the same keys only type.
	b.press("g", "e")
	b.rows(10_000)
	b.click("input[name=contact]")
	b.run(chromedp.KeyEvent("g/e?"))
	if got := eval[string](b, `document.activeElement.value + (document.querySelector("dialog") ? " and a dialog" : "")`); got != "g/e?" {
		t.Errorf("typed: %q", got)
	}
	for _, button := range []string{"Columns", "Download"} {
		b.run(chromedp.Evaluate(`document.activeElement.value = "", [...document.querySelectorAll("button")].find(e => e.innerText === `+quote(button)+`).focus()`, nil), chromedp.KeyEvent(kb.Enter))
		focus("the dialog "+button, `e.closest("dialog")?.ariaLabel === `+quote(button))
		b.press(kb.Escape)
		focus("the button "+button, `e.innerText === `+quote(button))
	}
}
