package store

import (
	"maps"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/shared/testing/pgtest"

	"github.com/lectern-dev/lectern/services/entries/internal/entry"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// filtered returns selections by no filter, by each that an operation has, and by all of these. So the number of statements
// does not double with each filter.
func filtered(of entry.Operations) map[string]entry.Selection {
	values := map[entry.Kind]any{entry.Equal: "x", entry.After: int64(1), entry.Before: int64(2), entry.Number: int64(3), entry.Is: true, entry.Answers: `"x"`, entry.AnswerKey: "x", entry.Contains: "xyz"}
	all := entry.Selection{ProjectID: "pr_1"}
	found := map[string]entry.Selection{"": all}
	for f := range entry.Filters(of) {
		c := entry.Condition{Filter: f, Value: values[f.Kind]}
		found[" by "+strings.TrimSuffix(f.Parameter, "_id")] = entry.Selection{ProjectID: "pr_1", Conditions: []entry.Condition{c}}
		all.Conditions = append(all.Conditions, c)
	}
	found[" by all"] = all
	return found
}

// directions returns the directions in which a list is checked, by name: both, or the default for a single filter.
func directions(by entry.Selection) map[string]bool {
	if len(by.Conditions) == 1 {
		return map[string]bool{"Descending": true}
	}
	return map[string]bool{"Ascending": false, "Descending": true}
}

// statements returns all statements of the package that are not whole in a file.
func statements(t *testing.T) map[string]string {
	t.Helper()
	all := pgtest.PackageStatements(t, ".")
	for name, by := range filtered(entry.ListEntries) {
		for sort, list := range map[entry.Sort]string{entry.ByUpdatedAt: "entriesByUpdatedAt", entry.ByCreatedAt: "entriesByCreatedAt"} {
			if len(by.Conditions) == 1 && by.Conditions[0].Field == sort.String() {
				continue // only the range differs
			}
			for direction, descending := range directions(by) {
				sql, _ := entryList(entryColumns, entry.List{Selection: by, Sort: sort, Descending: descending})
				pgtest.AddList(all, list+direction+name, sql)
			}
		}
	}
	for name, by := range filtered(entry.ListPageViews) {
		for direction, descending := range directions(by) {
			all["pageViews"+direction+name] = newViewSource(nil, entry.List{Selection: by, Descending: descending}).sql
		}
	}
	pgtest.AddList(all, "eventsAscending", events.Ascending)
	pgtest.AddList(all, "eventsDescending", events.Descending)
	for types, list := range changes {
		pgtest.AddList(all, "changes of "+types.String(), list)
	}
	all["takeNumbers"] = takeNumbers
	all["count at most"] = atMostOf(filtered(entry.Insights | entry.Counts)[" by all"], 1).sql
	return all
}

func TestGoldenStatements(t *testing.T) {
	t.Parallel()
	pgtest.CheckGolden(t, statements(t))
}

// TestStatements checks that every statement restricts each of its tables to one project, and reaches it by an index that
// leads with the project. In a distributed database every statement but projectsAfter is one task of one node.
func TestStatements(t *testing.T) {
	t.Parallel()
	all := statements(t)
	delete(all, "projectsAfter") // an administrator asks for all projects
	if pgtest.Server(t).Citus() {
		delete(all, "takeNumbers") // it is of plain Postgres
	}
	by := filtered(entry.Insights)[" by all"]
	for name, sql := range map[string]string{"counts filtered": countsSQL, "overview filtered": overviewSQL} {
		all[name] = insightOf(sql, by, by, nil, nil).sql
	}
	all["answers filtered"] = insightOf(answersSQL, by, by, nil, nil, nil, nil, nil).sql
	all["answers careful"] = careful.Replace(answersSQL)
	all["funnel filtered"] = insightOf(funnelSQL, by, by).sql
	maps.Copy(all, map[string]string{"counts": countsSQL, "overview": overviewSQL, "answers": answersSQL, "funnel": funnelSQL, "page keys": pageKeysSQL})
	pgtest.CheckStatements(t, Schema(), all, 20, putEntry, putEvent)
}
