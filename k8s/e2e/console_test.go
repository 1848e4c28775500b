package e2e

import (
	"context"
	"net/url"
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
)

// testConsole opens the console in a real browser at a host of the release, by a link that signs in. The console uses
// no other host, and the browser reports no fault.
func (r *release) testConsole(t *testing.T, host string) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ctx, cancel = chromedp.NewExecAllocator(ctx, append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(needs.Chromium(t)), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true), chromedp.Flag("no-proxy-server", true),
		chromedp.Flag("host-resolver-rules", "MAP "+host+" "+strings.TrimPrefix(r.url, "http://")),
		// Users have HTTPS, without which browsers do not honour Cross-Origin-Opener-Policy.
		chromedp.Flag("unsafely-treat-insecure-origin-as-secure", "http://"+host))...)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()
	defer func() { _ = chromedp.Cancel(ctx) }() // waits for the browser, and removes its folder
	seen := watchBrowser(ctx)
	link := "http://" + host + "/console/#project=pr_demo&key=" + url.QueryEscape(r.apiKey)
	var title, entries, address string
	if err := chromedp.Run(ctx, network.Enable(), log.Enable(), chromedp.Navigate(link),
		chromedp.WaitVisible(`[data-figure="entries"]`), // the overview shows the project's entries
		chromedp.Text(`[data-figure="entries"]`, &entries), chromedp.Title(&title), chromedp.Location(&address)); err != nil {
		t.Fatalf("%v; %s", err, seen)
	}
	if title != "Overview · Lectern" || entries == "" || entries == "0" {
		t.Errorf("the page %q shows %q entries", title, entries)
	}
	if strings.Contains(address, r.apiKey) {
		t.Error("the key stays in the address")
	}
	seen.mu.Lock()
	defer seen.mu.Unlock()
	if len(seen.complaints) > 0 {
		t.Errorf("the browser complains:\n%s", strings.Join(seen.complaints, "\n"))
	}
	if policy := seen.policies["http://"+host+"/console/"]; !strings.Contains(policy, "require-trusted-types-for 'script'") {
		t.Errorf("the page came with Content-Security-Policy %q", policy)
	}
	for _, asked := range seen.requests {
		if strings.HasPrefix(asked, "data:") { // sends no request; the browser's own controls have such images
			continue
		}
		if !strings.HasPrefix(asked, "http://"+host+"/") || strings.Contains(asked, r.apiKey) {
			t.Errorf("the page asked for %s", strings.ReplaceAll(asked, r.apiKey, "[key]"))
		}
	}
}

// browserEvents records the requests and complaints of a browser.
type browserEvents struct {
	mu         sync.Mutex
	requests   []string
	complaints []string
	policies   map[string]string // Content-Security-Policy of each answer, by its URL
}

// String shows the faults that the browser reported.
func (e *browserEvents) String() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return "the browser complains: " + strings.Join(e.complaints, "; ")
}

func watchBrowser(ctx context.Context) *browserEvents {
	seen := &browserEvents{policies: map[string]string{}}
	chromedp.ListenTarget(ctx, func(event any) {
		seen.mu.Lock()
		defer seen.mu.Unlock()
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			seen.requests = append(seen.requests, e.Request.URL)
		case *network.EventResponseReceived:
			policy, _ := e.Response.Headers["Content-Security-Policy"].(string)
			seen.policies[e.Response.URL] = policy
		case *runtime.EventExceptionThrown:
			seen.complaints = append(seen.complaints, e.ExceptionDetails.Error())
		case *runtime.EventConsoleAPICalled:
			if e.Type == runtime.APITypeError || e.Type == runtime.APITypeAssert {
				for _, a := range e.Args {
					seen.complaints = append(seen.complaints, string(a.Value)+a.Description)
				}
			}
		case *log.EventEntryAdded: // also what the Content-Security-Policy forbids
			if e.Entry.Level == log.LevelError {
				seen.complaints = append(seen.complaints, e.Entry.Text+" "+e.Entry.URL)
			}
		}
	})
	return seen
}
