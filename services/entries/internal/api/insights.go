package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/http/httpapi"

	"github.com/lectern-dev/lectern/services/entries/internal/entry"
	"github.com/lectern-dev/lectern/services/entries/internal/insight"
)

// Insights reads the insights of a project for one request. No answer is older than the result of an earlier call of
// Version.
type Insights interface {
	// Version returns the number of the project's newest change.
	Version(ctx context.Context, projectID string) (int64, error)
	// Counts returns counts as JSON, and the number of their rows. If there are more than [insight.MaxCounts] rows,
	// body may lack some of them.
	Counts(ctx context.Context, q insight.CountsQuestion) (rows int, body []byte, err error)
	// Funnels returns funnels as JSON, and the number of their versions and pages (rows). If rows is more than
	// [insight.MaxFunnelRows], there is no body.
	Funnels(ctx context.Context, q insight.FunnelQuestion) (rows int, body []byte, err error)
	// Overview returns an overview as JSON, and the number of its intervals. If there are more than [insight.MaxCounts]
	// intervals, body may lack some of them.
	Overview(ctx context.Context, q insight.OverviewQuestion) (intervals int, body []byte, err error)
	// Answers returns as JSON the keys of entry_data, or the values of one key, and the number of intervals. If there
	// are more than [insight.MaxCounts] intervals, body may lack some of them.
	Answers(ctx context.Context, q insight.AnswersQuestion) (intervals int, body []byte, err error)
}

// counts serves GET /projects/{projectId}/entries-counts: how many entries were created in each interval.
func (a *API) counts(w http.ResponseWriter, r *http.Request) error {
	q, which, err := insightQuery(r, entry.Insights|entry.Counts, countParameters)
	if err != nil {
		return err
	}
	ask := insight.CountsQuestion{
		Selection: which,
		Interval:  interval(q),
		By:        insight.By(q.Enum("by", "none", "none", "embeddable", "version")),
		Zone:      q.Zone("timezone"),
		AtMost:    q.Int("at_most", 0, 1, maxAtMost),
	}
	if q.Has("at_most") && ask.Interval != insight.All {
		q.Fail("interval", "all, because at_most bounds the count of all time")
	}
	if q.Has("at_most") && ask.By != insight.ByNone {
		q.Fail("by", "none, because at_most bounds one count")
	}
	return a.answer(w, r, q, which.ProjectID, "", func(from Insights) ([]byte, error) {
		rows, body, err := from.Counts(r.Context(), ask)
		return body, cmp.Or(err, tooManyRows(ask, rows))
	})
}

func interval(q *httpapi.Query) string {
	return q.Enum("interval", "day", "hour", "day", "week", "month", "all")
}

// tooManyRows returns an error for the client if an answer has more than [insight.MaxCounts] rows, and otherwise nil.
// The error names a larger interval or another way to get fewer rows.
func tooManyRows(ask insight.CountsQuestion, rows int) error {
	if rows <= insight.MaxCounts {
		return nil
	}
	allowed := "a shorter period, or one embeddable"
	if larger := ask.Larger(); larger != "" {
		allowed = larger
	}
	return apierr.BadParameter("interval", ask.Interval, fmt.Sprintf("%s, because there are more than %d rows", allowed, insight.MaxCounts))
}

// overview serves GET /projects/{projectId}/entries-overview: counts over time, the totals of the earlier period, and
// figures of each embeddable. If the request does not set created_before, the period ends at the current minute for the
// comparison with the earlier period.
func (a *API) overview(w http.ResponseWriter, r *http.Request) error {
	q, which, err := insightQuery(r, entry.Insights, overviewParameters)
	if err != nil {
		return err
	}
	now, until := now(q)
	ask := insight.OverviewQuestion{
		CountsQuestion: insight.CountsQuestion{Selection: which, Interval: interval(q), By: insight.ByNone, Zone: q.Zone("timezone")},
		Now:            now,
	}
	return a.answer(w, r, q, which.ProjectID, until, func(from Insights) ([]byte, error) {
		intervals, body, err := from.Overview(r.Context(), ask)
		return body, cmp.Or(err, tooManyRows(ask.CountsQuestion, intervals))
	})
}

// now returns the current minute, which ends a period that has no end for the comparison with the earlier period. until
// is that minute for the ETag, or "" if the answer does not depend on the minute.
func now(q *httpapi.Query) (at time.Time, until string) {
	at = time.Now().Truncate(time.Minute)
	if q.Has("created_after") && !q.Has("created_before") {
		until = at.Format(time.RFC3339)
	}
	return at, until
}

// funnel serves GET /projects/{projectId}/entries-funnel: how many entries reached each page of an embeddable.
func (a *API) funnel(w http.ResponseWriter, r *http.Request) error {
	q, which, err := insightQuery(r, entry.Insights, funnelParameters)
	if err != nil {
		return err
	}
	needEmbeddable(q)
	ask := insight.FunnelQuestion{Selection: which, ByVersion: q.Enum("by", "none", "none", "version") == "version"}
	return a.answer(w, r, q, which.ProjectID, "", func(from Insights) ([]byte, error) {
		rows, body, err := from.Funnels(r.Context(), ask)
		if err == nil && rows > insight.MaxFunnelRows {
			err = apierr.BadParameter("by", "version", fmt.Sprintf("none, or one version by the parameter version, because there are more than %d versions and pages", insight.MaxFunnelRows))
		}
		return body, err
	})
}

// answers serves GET /projects/{projectId}/entries-answers: the keys in the data of entries, or the values of one
// key.
func (a *API) answers(w http.ResponseWriter, r *http.Request) error {
	q, which, err := insightQuery(r, entry.Insights, answerParameters)
	if err != nil {
		return err
	}
	needEmbeddable(q)
	ask := insight.AnswersQuestion{
		CountsQuestion: insight.CountsQuestion{Selection: which, Interval: insight.All, By: insight.ByNone, Zone: q.Zone("timezone")},
		Key:            q.Identifier("key"), Values: q.Int("values", 0, 1, insight.MaxValues),
	}
	if q.Has("key") && q.Has("values") {
		q.Fail("values", "no value together with key")
	}
	if q.Has("interval") {
		if ask.Interval = q.Enum("interval", "", "hour", "day", "week", "month"); ask.Key == "" {
			q.Fail("key", "the key whose values interval counts")
		}
	}
	until := ""
	if q.Bool("previous", false) {
		if ask.Now, until = now(q); !q.Has("created_after") {
			q.Fail("created_after", "the time after which the period begins that previous compares")
		}
	}
	return a.answer(w, r, q, which.ProjectID, until, func(from Insights) ([]byte, error) {
		intervals, body, err := from.Answers(r.Context(), ask)
		return body, cmp.Or(err, tooManyRows(ask.CountsQuestion, intervals))
	})
}

// The names of the query parameters that each insight accepts: its filters and its other parameters.
var (
	countParameters    = parameters(entry.Insights|entry.Counts, "interval", "by", "timezone", "at_most")
	overviewParameters = parameters(entry.Insights, "interval", "timezone")
	funnelParameters   = parameters(entry.Insights, "by")
	answerParameters   = parameters(entry.Insights, "key", "values", "previous", "interval", "timezone")
)

// maxAtMost is the greatest value of the parameter at_most.
const maxAtMost = 1_000_000

// insightQuery reads the project and the filters of a request for an insight. known has the names of the allowed
// parameters. The error is about the path alone: faults of the query are recorded in the returned Query.
func insightQuery(r *http.Request, of entry.Operations, known []string) (*httpapi.Query, entry.Selection, error) {
	project, err := httpapi.PathIdentifier(r, "projectId")
	if err != nil {
		return nil, entry.Selection{}, err
	}
	q := httpapi.ParseQuery(r, known...)
	return q, entry.Selection{ProjectID: project, Conditions: readFilters(q, of)}, nil
}

// needEmbeddable records a fault in q if the request sets no embeddable_id. Numbers of pages and keys of entry_data have
// a meaning only within one embeddable.
func needEmbeddable(q *httpapi.Query) {
	if !q.Has("embeddable_id") {
		q.Fail("embeddable_id", "the id of an embeddable")
	}
}

// answer answers with the JSON that read returns, or with 304 if the client has that JSON already. The ETag depends on
// the URL, the build, the project's newest change, and also, which names any further input. answer reads the number of
// that change before the data, so the data is at least as new as the ETag says.
func (a *API) answer(w http.ResponseWriter, r *http.Request, q *httpapi.Query, projectID, also string, read func(Insights) ([]byte, error)) error {
	if err := q.Err(); err != nil {
		return err
	}
	from := a.insights()
	version, err := from.Version(r.Context(), projectID)
	if err != nil {
		return err
	}
	return httpapi.WriteVersioned(w, r, a.build+" "+strconv.FormatInt(version, 10)+" "+also, func() ([]byte, error) { return read(from) })
}
