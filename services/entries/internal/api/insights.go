package api

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strconv"

	"github.com/lectern-dev/lectern/shared/http/apierr"
	"github.com/lectern-dev/lectern/shared/http/httpapi"

	"github.com/lectern-dev/lectern/services/entries/internal/entry"
	"github.com/lectern-dev/lectern/services/entries/internal/insight"
)

// Insights reads insights of a project from one database.
type Insights interface {
	// Version returns the newest number of the project's changes.
	Version(ctx context.Context, projectID string) (int64, error)
	// Counts returns JSON. More than [insight.MaxCounts] rows are not complete.
	Counts(ctx context.Context, q insight.CountsQuestion) (rows int, body []byte, err error)
	// Funnels returns JSON. More than [insight.MaxFunnelRows] rows are not complete.
	Funnels(ctx context.Context, q insight.FunnelQuestion) (rows int, body []byte, err error)
	// Answers returns JSON.
	Answers(ctx context.Context, q insight.AnswersQuestion) (body []byte, err error)
}

// counts is the operation entries-counts.
func (a *API) counts(w http.ResponseWriter, r *http.Request) error {
	q, which, err := insightQuery(r, countParameters)
	if err != nil {
		return err
	}
	ask := insight.CountsQuestion{
		Selection: which,
		Interval:  q.Enum("interval", "day", "day", "week", "month", "all"),
		By:        insight.By(q.Enum("by", "none", "none", "embeddable", "version")),
		Zone:      q.Zone("timezone"),
	}
	return a.answer(w, r, q, which.ProjectID, func(from Insights) ([]byte, error) {
		rows, body, err := from.Counts(r.Context(), ask)
		if err == nil && rows > insight.MaxCounts {
			allowed := "a shorter period, or one embeddable"
			if larger := ask.Larger(); larger != "" {
				allowed = larger
			}
			err = apierr.BadParameter("interval", ask.Interval, fmt.Sprintf("%s, because there are more than %d rows", allowed, insight.MaxCounts))
		}
		return body, err
	})
}

// funnel is the operation entries-funnel.
func (a *API) funnel(w http.ResponseWriter, r *http.Request) error {
	q, which, err := insightQuery(r, funnelParameters)
	if err != nil {
		return err
	}
	needEmbeddable(q)
	ask := insight.FunnelQuestion{Selection: which, ByVersion: q.Enum("by", "none", "none", "version") == "version"}
	return a.answer(w, r, q, which.ProjectID, func(from Insights) ([]byte, error) {
		rows, body, err := from.Funnels(r.Context(), ask)
		if err == nil && rows > insight.MaxFunnelRows {
			err = apierr.BadParameter("by", "version", fmt.Sprintf("none, or one version by the parameter version, because there are more than %d versions and pages", insight.MaxFunnelRows))
		}
		return body, err
	})
}

// answers is the operation entries-answers.
func (a *API) answers(w http.ResponseWriter, r *http.Request) error {
	q, which, err := insightQuery(r, answerParameters)
	if err != nil {
		return err
	}
	needEmbeddable(q)
	ask := insight.AnswersQuestion{Selection: which, Key: q.Identifier("key")}
	return a.answer(w, r, q, which.ProjectID, func(from Insights) ([]byte, error) { return from.Answers(r.Context(), ask) })
}

// The parameters of the insights.
var (
	countParameters  = parameters(entry.Insights, "version", "interval", "by", "timezone")
	funnelParameters = parameters(entry.Insights, "version", "by")
	answerParameters = parameters(entry.Insights, "version", "key")
)

// insightQuery reads which entries an insight is about. known are its parameters.
func insightQuery(r *http.Request, known []string) (*httpapi.Query, insight.Selection, error) {
	project, err := httpapi.PathIdentifier(r, "projectId")
	if err != nil {
		return nil, insight.Selection{}, err
	}
	q := httpapi.ParseQuery(r, known...)
	which := insight.Selection{Selection: entry.Selection{ProjectID: project, Conditions: readFilters(q, entry.Insights)}}
	if q.Has("version") {
		version := int64(q.Int("version", 0, math.MinInt64, math.MaxInt64))
		which.Version = &version
	}
	return q, which, nil
}

// needEmbeddable refuses a question about no embeddable: pages and keys of several have nothing in common.
func needEmbeddable(q *httpapi.Query) {
	if !q.Has("embeddable_id") {
		q.Fail("embeddable_id", "the id of an embeddable")
	}
}

// answer answers with the result of read. Its version is the build and the project's newest number. This is read first and
// from the same database. So the data is at least as new as its version.
func (a *API) answer(w http.ResponseWriter, r *http.Request, q *httpapi.Query, projectID string, read func(Insights) ([]byte, error)) error {
	if err := q.Err(); err != nil {
		return err
	}
	from := a.insights()
	version, err := from.Version(r.Context(), projectID)
	if err != nil {
		return err
	}
	return httpapi.WriteVersioned(w, r, a.build+" "+strconv.FormatInt(version, 10), func() ([]byte, error) { return read(from) })
}
