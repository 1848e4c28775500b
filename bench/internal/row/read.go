package row

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/lectern-dev/lectern/bench/internal/load"
	"github.com/lectern-dev/lectern/bench/internal/must"
	"github.com/lectern-dev/lectern/bench/internal/report"
	"github.com/lectern-dev/lectern/bench/internal/sample"
	"github.com/lectern-dev/lectern/bench/internal/statement"
)

// read is a small request that a page of an application makes, with the names of its references.
type read struct {
	name      string
	path      string   // a format of the ids of a project, an entry and a contact
	statement string   // name of the SQL statement that the service runs for the request
	variables []string // pgbench's variables for the statement's parameters
	bare      string   // the name of the request at the bare handler; empty: the bare handler does not serve the request
}

// listPath and entryPath are formats of paths, for the ids of a project, an entry and a contact. The verb %.0[3]s
// prints nothing. The verb only lets a path without a contact ignore the contact's id.
const (
	listPath  = "/projects/%[1]s/entries%.0[3]s"
	entryPath = "/projects/%[1]s/entries/%[2]s%.0[3]s"
)

func reads() []read {
	return []read{
		{"list_10", listPath, "entriesByUpdatedAtDescending.chunk", []string{"project", "last", "none", "first", "none", "rows"}, "list"},
		{"get_one", entryPath, "getEntry", []string{"project", "entry"}, "one"},
		{"entry_events", "/projects/%[1]s/entries/%[2]s/events%.0[3]s", "eventsDescending.first",
			[]string{"project", "entry", "last", "none", "first", "none", "rows"}, "events"},
		{"page_views_10", "/projects/%[1]s/entries-page-views%.0[3]s", "pageViewsDescending",
			[]string{"project", "last", "none", "first", "none", "rows", "view_rows"}, ""},
		{"list_contact", "/projects/%[1]s/entries?contact_id=%[3]s", "entriesByUpdatedAtDescending by contact.chunk",
			[]string{"project", "contact", "last", "none", "first", "none", "rows"}, ""},
	}
}

// read measures the rate of the request r to the service. The references are pgbench with the same SQL statement, and
// the bare handler of bench/reference if it serves r.
func (b *Bench) read(ctx context.Context, r read) []report.Result {
	served := b.each(func(v *version) *contender {
		e := v.entries(ctx)
		return e.driven(ctx, e.Service, r.name, r.path)
	})
	e := b.tree().entries(ctx)
	sql := e.pgbench(r)
	if r.bare == "" {
		rounds(ctx, b.Rounds, append(served, sql)...)
		return []report.Result{served.result(r.name, report.RequestsRate, report.AtLeast(0.3), "pgbench", sql)}
	}
	bare := e.driven(ctx, e.bare, r.name, r.path)
	rounds(ctx, b.Rounds, append(served, sql, bare)...)
	return []report.Result{
		served.result(r.name, report.RequestsRate, report.AtLeast(0.3), "pgbench", sql),
		served[:1].result(r.name+"_bare", report.RequestsRate, report.AtLeast(0.78), "bare handler", bare),
	}
}

// pgbench returns a contender that runs the SQL statement of r on the database by pgbench. The figure is statements a
// second.
func (e *entries) pgbench(r read) *contender {
	sql := must.Get(statement.ForPgbench(must.Get(e.statements.Get(r.statement)), r.variables...))
	script := fmt.Sprintf("\\set project %d + random(1, %d)\n\\set number random(1, %d)\n\\set entry %s\n\\set contact %s\n%s;\n",
		firstProject, e.projects, e.each, sample.PgbenchEntryID("number"), sample.PgbenchContactID("number"), sql)
	reference := must.Get(load.NewSQL(e.of.Folder, r.name, script, map[string]string{
		"first": "-infinity", "last": "infinity", "none": "0", "rows": "11", "view_rows": "5000",
	}))
	return figure(func(ctx context.Context) float64 {
		return must.Get(reference.Run(ctx, e.Database.Reader, connections, e.of.Round))
	})
}

// deepPage measures the time of the page at nine tenths of a list, against the list's first page.
func (b *Bench) deepPage(ctx context.Context) []report.Result {
	return b.deep(ctx, "deep_page", (*version).entries, bigProject, "/entries?limit=%d", 10, bigEntries*9/10, report.AtMost(1.2))
}

// deep measures the time of the page of a list after the given number of records, against the list's first page. One
// request is in flight at a time. list is the path within the project, with a verb for the limit.
func (b *Bench) deep(ctx context.Context, name string, data func(*version, context.Context) *entries, project, list string, limit, after int, floor report.Floor) []report.Result {
	list = "/projects/" + project + list
	page := func(e *entries, name, path string) *contender {
		return b.alone(e.Service, must.Get(load.NewHTTP(e.of.Folder, name, []load.Request{{Path: path, Key: e.keys[project]}})))
	}
	deep := b.each(func(v *version) *contender {
		e := data(v, ctx)
		head := must.Get(get(ctx, http.DefaultClient, e.URL+fmt.Sprintf(list, after), e.keys[project], ""))
		if head.cursor == "" || head.rows != after {
			must.Do(fmt.Errorf("a page of %d records has %d and the cursor %q", after, head.rows, head.cursor))
		}
		return page(e, name, fmt.Sprintf(list, limit)+"&cursor="+head.cursor)
	})
	first := page(data(b.tree(), ctx), name+"_first", fmt.Sprintf(list, limit))
	rounds(ctx, b.Rounds, append(deep, first)...)
	return []report.Result{deep.result(name, report.Milliseconds, floor, "page 1", first)}
}

// grow measures the average time of list_10 in the database with Grow times the rows. The reference is list_10 in the
// small database.
func (b *Bench) grow(ctx context.Context) []report.Result {
	list := func(e *entries) *contender {
		requests := e.requests("list_grown", listPath)
		must.Get(requests.Run(ctx, e.URL, connections, time.Second))
		return &contender{cpu: e.CPU, run: func(ctx context.Context) (float64, int64) {
			rate := must.Get(requests.Run(ctx, e.URL, connections, b.Round))
			return milliseconds(rate.Time(connections)), rate.Count
		}}
	}
	large := b.each(func(v *version) *contender { return list(v.grown(ctx)) })
	small := list(b.tree().entries(ctx))
	rounds(ctx, b.Rounds, append(large, small)...)
	name := "grow_" + strconv.Itoa(b.Grow) + "x"
	return []report.Result{large.result(name, report.Milliseconds, report.AtMost(1.2), "list_10's rows", small)}
}

// edge measures the rate and the time of get_one through the edge, against requests that go to the service directly.
func (b *Bench) edge(ctx context.Context) []report.Result {
	var alone subjects
	through := b.each(func(v *version) *contender {
		e := v.entries(ctx)
		edge := v.StartEdge(ctx, e.Service)
		b.atEnd(edge.Stop)
		requests := e.requests("edge", entryPath)
		alone = append(alone, b.alone(edge, requests))
		return b.driven(ctx, edge, requests)
	})
	e := b.tree().entries(ctx)
	requests := e.requests("edge_direct", entryPath)
	direct, directAlone := b.driven(ctx, e.Service, requests), b.alone(e.Service, requests)
	rounds(ctx, b.Rounds, append(through, direct)...)
	rounds(ctx, b.Rounds, append(alone, directAlone)...)
	return []report.Result{
		through.result("edge", report.RequestsRate, report.Floor{}, "direct", direct),
		alone.result("edge_p50", report.Milliseconds, report.Floor{}, "direct", directAlone),
	}
}
