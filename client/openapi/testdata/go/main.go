// Command go calls every operation of the API with a client that oapi-codegen generated. Command go prints the names
// of the operations that succeeded, one a line.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	c, err := NewClientWithResponses(os.Getenv("LECTERN_URL"))
	if err != nil {
		return err
	}
	const project, entry, embeddable, experiment = "pr_demo", "en_1", "emb_1", "exp_1"
	key := header("X-Api-Key", os.Getenv("LECTERN_API_KEY"))
	origin := header("Origin", "https://app.example.com")
	target := os.Getenv("TARGET_URL")
	ascending, updatedAt, after := ListEntriesParamsDirection("ASC"), ListEntriesParamsSort("updated_at"), time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	one, urls, running := 1, true, ExperimentState("running")
	at := time.Date(2022, 1, 1, 0, 0, 0, 0, time.UTC)

	var failed error
	// answered prints the name of an operation if the status is 200 and good returns true. Otherwise answered sets
	// failed.
	answered := func(operation string, status int, body []byte, err error, good func() bool) {
		switch {
		case err != nil:
			failed = fmt.Errorf("%s: %w", operation, err)
		case status != http.StatusOK || !good():
			failed = fmt.Errorf("%s: %d %.300s", operation, status, body)
		default:
			fmt.Println(operation)
		}
	}

	entries, err := c.ListEntriesWithResponse(ctx, project, &ListEntriesParams{Direction: &ascending, Sort: &updatedAt, UpdatedAfter: &after, Limit: &one}, key)
	answered("listEntries", status(entries), body(entries), err, func() bool { return len(*entries.JSON200) == 1 && (*entries.JSON200)[0].EntryId == entry })
	next := entries.HTTPResponse.Header.Get("X-Next-Cursor")
	rest, err := c.ListEntriesWithResponse(ctx, project, &ListEntriesParams{Direction: &ascending, Sort: &updatedAt, UpdatedAfter: &after, Cursor: &next}, key)
	answered("listEntries", status(rest), body(rest), err, func() bool { return len(*rest.JSON200) == 1 && (*rest.JSON200)[0].EntryId == "en_2" })
	single, err := c.GetEntryWithResponse(ctx, project, entry, key)
	answered("getEntry", status(single), body(single), err, func() bool { return single.JSON200.EntryData == `{"n":1}` })
	events, err := c.ListEntryEventsWithResponse(ctx, project, entry, nil, key)
	answered("listEntryEvents", status(events), body(events), err, func() bool {
		return *(*events.JSON200)[0].PageId == "pg_1" && (*events.JSON200)[0].CustomEventName == nil
	})
	views, err := c.ListEntriesPageViewsWithResponse(ctx, project, &ListEntriesPageViewsParams{IncludeUrls: &urls}, key)
	answered("listEntriesPageViews", status(views), body(views), err, func() bool { return len(*views.JSON200) == 2 })
	types, wait := "entry,entry_removed", 1
	changes, err := c.ListEntriesChangesWithResponse(ctx, project, &ListEntriesChangesParams{Types: &types, Wait: &wait, Limit: &one}, key)
	answered("listEntriesChanges", status(changes), body(changes), err, func() bool {
		first, err := (*changes.JSON200)[0].AsEntryChange()
		return err == nil && first.Entry.EntryId == entry
	})
	question, all := "n", CountEntriesParamsInterval("all")
	counts, err := c.CountEntriesWithResponse(ctx, project, &CountEntriesParams{Interval: &all}, key)
	answered("countEntries", status(counts), body(counts), err, func() bool { return (*counts.JSON200)[0].Entries == 2 })
	overview, err := c.GetEntriesOverviewWithResponse(ctx, project, nil, key)
	answered("getEntriesOverview", status(overview), body(overview), err, func() bool { return overview.JSON200.Embeddables[0].Entries == 2 })
	funnel, err := c.GetEntriesFunnelWithResponse(ctx, project, &GetEntriesFunnelParams{EmbeddableId: embeddable}, key)
	answered("getEntriesFunnel", status(funnel), body(funnel), err, func() bool { return (*funnel.JSON200)[0].Started == 1 })
	answers, err := c.GetEntriesAnswersWithResponse(ctx, project, &GetEntriesAnswersParams{EmbeddableId: embeddable, Key: &question}, key)
	answered("getEntriesAnswers", status(answers), body(answers), err, func() bool {
		of, err := answers.JSON200.AsAnswers()
		return err == nil && of.Entries == 2 && len(of.Values) == 2
	})
	embeddables, err := c.ListEmbeddablesWithResponse(ctx, project, nil, key)
	answered("listEmbeddables", status(embeddables), body(embeddables), err, func() bool { return (*embeddables.JSON200)[0].EmbeddableId == embeddable })
	whole, err := c.GetEmbeddableWithResponse(ctx, project, embeddable, nil, key)
	answered("getEmbeddable", status(whole), body(whole), err, func() bool { return whole.JSON200.JsonStringProd == "{}" })
	versions, err := c.ListEmbeddableVersionsWithResponse(ctx, project, embeddable, nil, key)
	answered("listEmbeddableVersions", status(versions), body(versions), err, func() bool { return (*versions.JSON200)[0].VersionNumber == 1 })
	version, err := c.GetEmbeddableVersionWithResponse(ctx, project, embeddable, 1, nil, key)
	answered("getEmbeddableVersion", status(version), body(version), err, func() bool { return version.JSON200.JsonString == "{}" })
	experiments, err := c.ListExperimentsWithResponse(ctx, project, &ListExperimentsParams{Status: &running})
	answered("listExperiments", status(experiments), body(experiments), err, func() bool { return (*experiments.JSON200)[0].Id == experiment })
	test, err := c.GetExperimentWithResponse(ctx, project, experiment)
	answered("getExperiment", status(test), body(test), err, func() bool { return test.JSON200.Outcome == nil && *test.JSON200.Status == "running" })
	history, err := c.ListExperimentStatusChangesWithResponse(ctx, project, experiment, nil)
	answered("listExperimentStatusChanges", status(history), body(history), err, func() bool { return *(*history.JSON200)[0].Status == "running" })
	home, err := c.GetProjectWithResponse(ctx, project)
	answered("getProject", status(home), body(home), err, func() bool { return home.JSON200.Title == "Demo" })
	own, err := c.GetKeyWithResponse(ctx, project, key)
	answered("getKey", status(own), body(own), err, func() bool { return own.JSON200.ProjectId == project && own.JSON200.ExpiresAt == nil })
	projects, err := c.ListMyProjectsWithResponse(ctx, nil, key)
	answered("listMyProjects", status(projects), body(projects), err, func() bool {
		return len(*projects.JSON200) == 1 && (*projects.JSON200)[0].ProjectId == project
	})
	region, err := c.LookUpProjectRegionWithResponse(ctx, RegionLookUp{ProjectId: project, At: &at}, header("X-Api-Key", os.Getenv("LECTERN_INTERNAL_API_KEY")))
	answered("lookUpProjectRegion", status(region), body(region), err, func() bool { return region.JSON200.Region == "Europe/Berlin" && region.JSON200.OffsetInMinutes == 60 })
	yaml, err := c.GetDescriptionYAMLWithResponse(ctx)
	answered("getDescriptionYAML", status(yaml), body(yaml), err, func() bool { return (*yaml.YAML200)["openapi"] == "3.0.3" })
	json, err := c.GetDescriptionJSONWithResponse(ctx)
	answered("getDescriptionJSON", status(json), body(json), err, func() bool { return (*json.JSON200)["openapi"] == "3.0.3" })
	page, err := c.GetReferenceWithResponse(ctx)
	answered("getReference", status(page), body(page), err, func() bool { return strings.Contains(string(page.Body), "<html") })
	asset, err := c.GetReferenceAssetWithResponse(ctx, "start.js")
	answered("getReferenceAsset", status(asset), body(asset), err, func() bool { return len(asset.Body) > 0 })

	templating := UseBodyTemplating("true")
	get, err := c.ProxyGetWithResponse(ctx, &ProxyGetParams{Url: target, XProjectID: project, XEnvironment: "prod"}, origin)
	answered("proxyGet", status(get), body(get), err, func() bool { return string(get.Body) == "GET " })
	post, err := c.ProxyPostWithBodyWithResponse(ctx, &ProxyPostParams{Url: target, XProjectID: project, XEnvironment: "prod", XUseBodyTemplating: &templating}, "text/plain", strings.NewReader("{{ cred_echo }}"), origin)
	answered("proxyPost", status(post), body(post), err, func() bool { return string(post.Body) == "POST a-credential" })
	put, err := c.ProxyPutWithBodyWithResponse(ctx, &ProxyPutParams{Url: target, XProjectID: project, XEnvironment: "prod"}, "text/plain", strings.NewReader("{{ cred_echo }}"), origin)
	answered("proxyPut", status(put), body(put), err, func() bool { return string(put.Body) == "PUT {{ cred_echo }}" })
	patch, err := c.ProxyPatchWithBodyWithResponse(ctx, &ProxyPatchParams{Url: target, XProjectID: project, XEnvironment: "prod"}, "text/plain", strings.NewReader("x"), origin)
	answered("proxyPatch", status(patch), body(patch), err, func() bool { return string(patch.Body) == "PATCH x" })
	remove, err := c.ProxyDeleteWithBodyWithResponse(ctx, &ProxyDeleteParams{Url: target, XProjectID: project, XEnvironment: "prod"}, "text/plain", strings.NewReader(""), origin)
	answered("proxyDelete", status(remove), body(remove), err, func() bool { return string(remove.Body) == "DELETE " })
	if failed != nil {
		return failed
	}

	// The generated client also has types for errors.
	none, err := c.GetEntryWithResponse(ctx, project, "en_nope", key)
	if err != nil || none.JSON404 == nil || none.JSON404.Error.Code != "entry_not_found" || *none.JSON404.EntryId != "en_nope" {
		return fmt.Errorf("an entry that is not there: %s, %v", body(none), err)
	}
	stranger, err := c.ListEntriesWithResponse(ctx, project, nil, header("X-Api-Key", "nonsense"))
	if err != nil || stranger.JSON401 == nil || *stranger.JSON401.ProjectId != project {
		return fmt.Errorf("a wrong key: %s, %v", body(stranger), err)
	}
	return nil
}

// header returns an editor that sets a header of a request.
func header(name, value string) RequestEditorFn {
	return func(_ context.Context, r *http.Request) error {
		r.Header.Set(name, value)
		return nil
	}
}

// response is implemented by the answers of all generated operations.
type response interface {
	comparable
	StatusCode() int
	GetBody() []byte
}

func status[R response](r R) int {
	if r == *new(R) {
		return 0
	}
	return r.StatusCode()
}

func body[R response](r R) []byte {
	if r == *new(R) {
		return nil
	}
	return r.GetBody()
}
