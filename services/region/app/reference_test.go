package app

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/lectern-dev/lectern/shared/testing/needs"
	"github.com/lectern-dev/lectern/shared/testing/openapitest"
)

// TestLongReferenceInBrowser opens the reference page in a browser. The page renders every operation, sends no request to
// another host, and logs no error. If REFERENCE_SCREENSHOT is set, the test writes a screenshot of the first operation
// to that file.
func TestLongReferenceInBrowser(t *testing.T) {
	needs.Long(t)
	chromium := needs.Chromium(t)
	s := start(t, nil)
	d, err := openapitest.Load()
	if err != nil {
		t.Fatal(err)
	}
	var summaries []string
	for _, item := range d.Paths.Map() {
		for _, op := range item.Operations() {
			summaries = append(summaries, op.Summary)
		}
	}
	slices.Sort(summaries)

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	ctx, cancel = chromedp.NewExecAllocator(ctx, flags(chromium)...)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()
	defer func() { _ = chromedp.Cancel(ctx) }() // waits for the browser, and removes its folder
	seen := watch(ctx)
	if err := chromedp.Run(ctx, network.Enable(), log.Enable(), chromedp.EmulateViewport(1400, 2400), chromedp.Navigate(s.URL+"/docs")); err != nil {
		t.Fatal(err)
	}
	// Sections are rendered when they are scrolled into view, so the test scrolls through the page.
	missing := summaries
	for end := time.Now().Add(5 * time.Minute); len(missing) > 0 && time.Now().Before(end); {
		var text string
		err := chromedp.Run(ctx,
			chromedp.Evaluate(`window.scrollBy(0, 1200); if (window.innerHeight + window.scrollY + 10 >= document.body.scrollHeight) window.scrollTo(0, 0); 0`, nil),
			chromedp.Evaluate(`[...document.querySelectorAll("main h1, main h2, main h3, main h4, #reference h3, #reference h2")].map(e => e.innerText).join("\n")`, &text))
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(text, "\n")
		missing = slices.DeleteFunc(slices.Clone(missing), func(summary string) bool {
			return slices.ContainsFunc(lines, func(l string) bool { return strings.TrimSpace(l) == summary })
		})
	}
	if len(missing) > 0 {
		t.Errorf("not rendered: %q", missing)
	}
	screenshot(ctx, t)

	seen.mu.Lock()
	defer seen.mu.Unlock()
	if len(seen.complaints) > 0 {
		t.Errorf("the browser's console has:\n%s", strings.Join(seen.complaints, "\n"))
	}
	origin, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	own := 0
	for _, request := range seen.requests {
		u, err := url.Parse(request)
		switch {
		case err != nil:
			t.Error(err)
		case u.Scheme == "data" || u.Scheme == "blob": // needs no request
		case u.Host != origin.Host:
			t.Errorf("the page sends a request to %s", request)
		default:
			own++
		}
	}
	if own < 4 { // the page, its two scripts, the description
		t.Errorf("only %d requests were seen: %q", own, seen.requests)
	}
}

// browserLog records the requests and errors of the browser.
type browserLog struct {
	mu         sync.Mutex
	requests   []string
	complaints []string
}

func watch(ctx context.Context) *browserLog {
	w := &browserLog{}
	chromedp.ListenTarget(ctx, func(event any) {
		w.mu.Lock()
		defer w.mu.Unlock()
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			w.requests = append(w.requests, e.Request.URL)
		case *runtime.EventExceptionThrown:
			w.complaints = append(w.complaints, "exception: "+e.ExceptionDetails.Error())
		case *runtime.EventConsoleAPICalled:
			if e.Type == runtime.APITypeError || e.Type == runtime.APITypeAssert {
				var said []string
				for _, a := range e.Args {
					said = append(said, string(a.Value)+a.Description)
				}
				w.complaints = append(w.complaints, fmt.Sprintf("console.%s: %s", e.Type, strings.Join(said, " ")))
			}
		case *log.EventEntryAdded: // including what the Content-Security-Policy forbids
			if e.Entry.Level == log.LevelError {
				w.complaints = append(w.complaints, e.Entry.Text+" "+e.Entry.URL)
			}
		}
	})
	return w
}

func flags(chromium string) []chromedp.ExecAllocatorOption {
	return append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(chromium), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true))
}

func screenshot(ctx context.Context, t *testing.T) {
	t.Helper()
	file := os.Getenv("REFERENCE_SCREENSHOT")
	if file == "" {
		return
	}
	var picture []byte
	err := chromedp.Run(ctx,
		chromedp.Evaluate(`[...document.querySelectorAll("h3")].find(e => e.innerText.trim() == "List entries").scrollIntoView(); 0`, nil),
		chromedp.CaptureScreenshot(&picture))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Clean(file), picture, 0o644); err != nil {
		t.Fatal(err)
	}
}
