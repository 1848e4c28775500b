package row

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/lectern-dev/lectern/bench/internal/load"
	"github.com/lectern-dev/lectern/bench/internal/report"
	"github.com/lectern-dev/lectern/bench/internal/sample"
	"github.com/lectern-dev/lectern/bench/internal/stage"
	"github.com/lectern-dev/lectern/bench/internal/statement"
)

// connections is the number of connections of each load.
const connections = 16

// A read is a small request that a page of an application makes.
type read struct {
	name      string
	path      string   // of project and entry
	statement string   // that the service runs for it
	variables []string // that stand for the statement's parameters
	bare      string   // the bare handler's name for it
}

func reads() []read {
	return []read{
		{"list_10", "/projects/%[1]s/entries", "entriesByUpdatedAtDescending.chunk",
			[]string{"project", "last", "none", "first", "none", "rows"}, "list"},
		{"get_one", "/projects/%[1]s/entries/%[2]s", "getEntry", []string{"project", "entry"}, "one"},
		{"entry_events", "/projects/%[1]s/entries/%[2]s/events", "eventsDescending.first",
			[]string{"project", "entry", "last", "none", "first", "none", "rows"}, "events"},
		{"page_views_10", "/projects/%[1]s/entries-page-views", "pageViewsDescending",
			[]string{"project", "last", "none", "first", "none", "rows", "view_rows"}, "page_views"},
	}
}

// read compares a read with the bare handler and pgbench.
func (b *Bench) read(ctx context.Context, r read) ([]report.Result, error) {
	e, err := b.entries(ctx)
	if err != nil {
		return nil, err
	}
	return b.readOf(ctx, e, r, r.name)
}

// readOf measures a read of e under a row's name.
func (b *Bench) readOf(ctx context.Context, e *entries, r read, name string) ([]report.Result, error) {
	// Paths without an entry ignore the parameter %[2]s.
	requests, err := e.requests(b.stage.Folder, name, r.path+"%.0[2]s")
	if err != nil {
		return nil, err
	}
	sql, err := b.pgbench(e, r, name)
	if err != nil {
		return nil, err
	}
	served, bare := &driven{of: e.Service}, &driven{of: e.bare}
	for _, d := range []*driven{bare, served} {
		if _, err := requests.Run(ctx, d.of.URL, connections, time.Second); err != nil {
			return nil, err
		}
	}
	v, err := rounds(ctx, b.Rounds, served.by(requests, b.Round), bare.by(requests, b.Round), func(ctx context.Context) (float64, error) {
		rate, err := sql.Run(ctx, e.Database.Reader, connections, b.Round)
		return rate.PerSecond, err
	})
	if err != nil {
		return nil, err
	}
	return []report.Result{
		report.Ratios(name, report.RequestsRate, report.AtLeast(0.3), v[0], "pgbench", v[2]),
		report.Ratios(name+"_bare", report.RequestsRate, report.AtLeast(0.78), v[0], "bare handler", v[1]),
		report.Ratios(name+"_cpu", report.Nanoseconds, report.Floor{}, served.cpu, "bare handler", bare.cpu),
	}, nil
}

// driven is a server under load, with the processor time of a request in each round. Other work of the machine
// changes that figure little.
type driven struct {
	of  *stage.Service
	cpu []float64 // ns
}

func (d *driven) by(requests *load.HTTP, round time.Duration) contender {
	return func(ctx context.Context) (float64, error) {
		before, err := d.of.CPU()
		if err != nil {
			return 0, err
		}
		rate, err := requests.Run(ctx, d.of.URL, connections, round)
		if err != nil {
			return 0, err
		}
		after, err := d.of.CPU()
		d.cpu = append(d.cpu, float64(after-before)/float64(rate.Count))
		return rate.PerSecond, err
	}
}

// pgbench prepares the statement of a read as a load with a file of that name.
func (b *Bench) pgbench(e *entries, r read, name string) (*load.SQL, error) {
	sql, err := e.statements.Get(r.statement)
	if err != nil {
		return nil, err
	}
	if sql, err = statement.ForPgbench(sql, r.variables...); err != nil {
		return nil, err
	}
	script := fmt.Sprintf("\\set project %d + random(1, %d)\n\\set number random(1, %d)\n\\set entry %s\n\\set contact %s\n%s;\n",
		firstProject, e.projects, e.each, sample.PgbenchEntryID("number"), sample.PgbenchContactID("number"), sql)
	reference, err := load.NewSQL(b.stage.Folder, name, script, map[string]string{
		"first": "-infinity", "last": "infinity", "none": "0", "rows": "11", "view_rows": strconv.Itoa(5000),
	})
	if err == nil && b.Citus != "" {
		reference.WarmUp = time.Second
	}
	return reference, err
}

// listContact compares the list of one contact's entries with pgbench.
func (b *Bench) listContact(ctx context.Context) ([]report.Result, error) {
	e, err := b.entries(ctx)
	if err != nil {
		return nil, err
	}
	r := read{name: "list_contact", path: "/projects/%[1]s/entries?contact_id=%[3]s%.0[2]s",
		statement: "entriesByUpdatedAtDescending by contact.chunk",
		variables: []string{"project", "contact", "last", "none", "first", "none", "rows"}}
	requests, err := e.requests(b.stage.Folder, r.name, r.path)
	if err != nil {
		return nil, err
	}
	sql, err := b.pgbench(e, r, r.name)
	if err != nil {
		return nil, err
	}
	if _, err := requests.Run(ctx, e.URL, connections, time.Second); err != nil {
		return nil, err
	}
	v, err := rounds(ctx, b.Rounds, (&driven{of: e.Service}).by(requests, b.Round), func(ctx context.Context) (float64, error) {
		rate, err := sql.Run(ctx, e.Database.Reader, connections, b.Round)
		return rate.PerSecond, err
	})
	if err != nil {
		return nil, err
	}
	return []report.Result{report.Ratios(r.name, report.RequestsRate, report.AtLeast(0.3), v[0], "pgbench", v[1])}, nil
}

// deepPage compares the page at nine tenths of a list with its first page.
func (b *Bench) deepPage(ctx context.Context) ([]report.Result, error) {
	e, err := b.entries(ctx)
	if err != nil {
		return nil, err
	}
	return b.deep(ctx, e, "deep_page", bigProject, "/entries?limit=%d", 10, bigEntries*9/10, report.AtMost(1.2))
}

// deep compares a page of a list after the given number of records with its first page, one request at a time. list
// is the path within the project, with a verb for the limit.
func (b *Bench) deep(ctx context.Context, e *entries, name, project, list string, limit, after int, floor report.Floor) ([]report.Result, error) {
	list = "/projects/" + project + list
	head, err := get(ctx, e.URL+fmt.Sprintf(list, after), e.keys[project])
	if err != nil {
		return nil, err
	}
	if head.cursor == "" || head.rows != after {
		return nil, fmt.Errorf("a page of %d records has %d and the cursor %q", after, head.rows, head.cursor)
	}
	path := fmt.Sprintf(list, limit)
	page := func(name, path string) (contender, error) {
		requests, err := load.NewHTTP(b.stage.Folder, name, []load.Request{{Path: path, Key: e.keys[project]}})
		return func(ctx context.Context) (float64, error) {
			rate, err := requests.Run(ctx, e.URL, 1, b.Round)
			return milliseconds(rate.P50), err
		}, err
	}
	first, err := page(name+"_first", path)
	if err != nil {
		return nil, err
	}
	deep, err := page(name, path+"&cursor="+head.cursor)
	if err != nil {
		return nil, err
	}
	v, err := rounds(ctx, b.Rounds, deep, first)
	if err != nil {
		return nil, err
	}
	return []report.Result{report.Ratios(name, report.Milliseconds, floor, v[0], "page 1", v[1])}, nil
}

// grow compares list_10 over many times the rows with list_10.
func (b *Bench) grow(ctx context.Context) ([]report.Result, error) {
	e, err := b.entries(ctx)
	if err != nil {
		return nil, err
	}
	g, err := b.grown(ctx)
	if err != nil {
		return nil, err
	}
	list := func(name string, of *entries) (contender, error) {
		requests, err := of.requests(b.stage.Folder, name, "/projects/%[1]s/entries%.0[2]s")
		if err == nil {
			_, err = requests.Run(ctx, of.URL, connections, time.Second)
		}
		return func(ctx context.Context) (float64, error) {
			rate, err := requests.Run(ctx, of.URL, connections, b.Round)
			return milliseconds(rate.Time(connections)), err
		}, err
	}
	small, err := list("list_small", e)
	if err != nil {
		return nil, err
	}
	large, err := list("list_grown", g)
	if err != nil {
		return nil, err
	}
	v, err := rounds(ctx, b.Rounds, large, small)
	if err != nil {
		return nil, err
	}
	name := "grow_" + strconv.Itoa(b.Grow) + "x"
	return []report.Result{report.Ratios(name, report.Milliseconds, report.AtMost(1.2), v[0], "list_10's rows", v[1])}, nil
}
