package consoletest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// pictures is the environment variable with the folder for TestLongLook's screenshots of each page.
const pictures = "LECTERN_PICTURES"

// axe returns the source of axe-core, which is a development dependency of the console.
func axe(t *testing.T) string {
	t.Helper()
	source, err := os.ReadFile("../../../services/console/web/node_modules/axe-core/axe.min.js")
	if errors.Is(err, fs.ErrNotExist) && os.Getenv("CI") != "true" {
		t.Log("axe-core is not installed, so accessibility is not tested: run scripts/npm-ci services/console/web")
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(source)
}

// accessible fails the test for each rule of axe-core that the page breaks. Without rules it checks all of them.
func (b *tab) accessible(source, when string, rules ...string) {
	b.Helper()
	if source == "" {
		return
	}
	if !eval[bool](b, `"axe" in window`) {
		b.run(chromedp.Evaluate(source, nil))
	}
	options := map[string]any{"resultTypes": []string{"violations"}}
	if len(rules) > 0 {
		options["runOnly"] = rules
	}
	text, err := json.Marshal(options)
	if err != nil {
		b.Fatal(err)
	}
	for _, violation := range eval[[]string](b, `axe.run(document, `+string(text)+`).then(r => r.violations.map(v =>
		v.id + ": " + v.help + "\n" + v.nodes.slice(0, 4).map(n => "    " + n.html.slice(0, 300) + "\n    " + n.failureSummary.replaceAll("\n", "\n    ")).join("\n")))`) {
		b.Errorf("%s: %s", when, violation)
	}
}

// look sets the width of the window and the colour scheme.
func (b *tab) look(width int64, scheme string) {
	b.Helper()
	b.run(
		emulation.SetDeviceMetricsOverride(width, max(700, width*9/16), 1, false),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}),
		// Parts that depend on the size of the window change with the next frame.
		chromedp.Evaluate(`new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))`, nil, awaited))
}

// fits fails the test if the page is wider than the window, or scrolls further than its content.
func (b *tab) fits(when string) {
	b.Helper()
	if wide := eval[[]string](b, `document.documentElement.scrollWidth <= innerWidth ? [] :
		[document.documentElement.scrollWidth + " px", ...[...document.querySelectorAll("main *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1).slice(0, 5).map(e => e.outerHTML.slice(0, 150))]`); len(wide) > 0 {
		b.Errorf("%s: the page is wider than the window: %s", when, strings.Join(wide, "\n  "))
	}
	if below := eval[float64](b, `document.documentElement.scrollHeight - Math.max(innerHeight, document.querySelector("#app").getBoundingClientRect().height)`); below > 1 {
		b.Errorf("%s: the page scrolls %.0f px into emptiness", when, below)
	}
}

// picture writes a screenshot to the folder of pictures, if one is set.
func (b *tab) picture(name string) {
	b.Helper()
	folder := os.Getenv(pictures)
	if folder == "" {
		return
	}
	var png []byte
	b.run(chromedp.CaptureScreenshot(&png))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name+".png"), png, 0o644); err != nil {
		b.Fatal(err)
	}
}

// allLooks checks a state of a page in windows of all sizes, light and dark: that the page fits into the window, and the
// accessibility. allLooks takes a picture of each, and leaves a light window of 1280 pixels.
func (b *tab) allLooks(source, state string) {
	b.Helper()
	for _, width := range []int64{2560, 390, 1280} {
		for _, scheme := range []string{"dark", "light"} {
			b.look(width, scheme)
			when := fmt.Sprintf("%s at %d px, %s", state, width, scheme)
			b.fits(when)
			b.picture(fmt.Sprintf("%s-%d-%s", state, width, scheme))
			switch {
			case width > 390:
			case scheme == "light":
				b.accessible(source, when)
			default:
				b.accessible(source, when, "color-contrast")
			}
		}
	}
}

// TestLongLook checks each page in windows of all sizes, light and dark. It checks accessibility once for each layout,
// and the rules about colours once for each scheme.
func TestLongLook(t *testing.T) {
	t.Parallel()
	w := start(t)
	source := axe(t)
	for _, v := range views(w) {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			b := newTab(t, w)
			b.show(w, v)
			for _, width := range []int64{360, 1280, 2560, 3840} {
				for _, scheme := range []string{"light", "dark"} {
					b.look(width, scheme)
					when := fmt.Sprintf("%s at %d px, %s", v.name, width, scheme)
					b.fits(when)
					b.picture(fmt.Sprintf("%s-%d-%s", v.name, width, scheme))
					switch {
					case width > 1280:
					case scheme == "light":
						b.accessible(source, when)
					default:
						b.accessible(source, when, "color-contrast")
					}
				}
			}
		})
	}
	t.Run("states", func(t *testing.T) {
		t.Parallel()
		b := newTab(t, w)
		b.open("/console/")
		b.until("the form", `document.querySelector("form input[name=key]")`)
		b.accessible(source, "sign-in")
		b.picture("sign-in")
		b.breaks(&fault{serve: refusal(401, "unauthorized")})
		b.signIn(demoProject, w.APIKey, overview)
		b.state("401")
		b.look(360, "dark")
		b.fits("a refused key")
		b.accessible(source, "a refused key, dark")
		b.picture("refused-360-dark")
		b.breaks(&fault{serve: refusal(503, "service_unavailable", "Retry-After", "20")})
		b.run(chromedp.Reload())
		b.state("waiting-503")
		b.accessible(source, "waiting, dark")
		b.offline(true)
		b.until("offline", `document.querySelector("[data-state=offline]")`)
		b.accessible(source, "offline, dark")
	})
	t.Run("dialogs", func(t *testing.T) {
		t.Parallel()
		b := newTab(t, w)
		b.signIn(demoProject, w.APIKey, at(demoProject, "entries?embeddable="+solar))
		b.until("the entries", `[...document.querySelectorAll("button")].some(e => e.innerText === "Columns" && !e.disabled)`)
		b.look(360, "light")
		for _, dialog := range []struct{ label, open string }{
			{"Keyboard", `document.dispatchEvent(new KeyboardEvent("keydown", { key: "?", bubbles: true }))`},
			{"Search", `document.dispatchEvent(new KeyboardEvent("keydown", { key: "/", bubbles: true }))`},
			{"Columns", `[...document.querySelectorAll("button")].find(e => e.innerText === "Columns").click()`},
			{"Download", `[...document.querySelectorAll("button")].find(e => e.innerText === "Download").click()`},
		} {
			eval[bool](b, dialog.open+` !== 0`)
			b.until(dialog.label, `document.querySelector("dialog")?.ariaLabel === `+quote(dialog.label))
			b.fits("the dialog " + dialog.label)
			b.accessible(source, "the dialog "+dialog.label)
			b.picture("dialog-" + dialog.label)
			b.press(kb.Escape)
			b.until("it is closed", `!document.querySelector("dialog")`)
		}
	})
}
