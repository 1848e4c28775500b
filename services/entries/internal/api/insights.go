package api

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strconv"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/httpapi"
	"github.com/lectern-dev/lectern/shared/wire"

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
	q, filter, err := insightQuery(r, "interval", "by", "timezone")
	if err != nil {
		return err
	}
	ask := insight.CountsQuestion{
		Filter:   filter,
		Interval: q.Enum("interval", "day", "day", "week", "month", "all"),
		By:       insight.By(q.Enum("by", "none", "none", "embeddable", "version")),
		Timezone: q.Zone("timezone", "UTC"),
	}
	return a.answer(w, r, q, filter, func(from Insights) ([]byte, error) {
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
	q, filter, err := insightQuery(r, "by")
	if err != nil {
		return err
	}
	needEmbeddable(q)
	ask := insight.FunnelQuestion{Filter: filter, ByVersion: q.Enum("by", "none", "none", "version") == "version"}
	return a.answer(w, r, q, filter, func(from Insights) ([]byte, error) {
		rows, body, err := from.Funnels(r.Context(), ask)
		if err == nil && rows > insight.MaxFunnelRows {
			err = apierr.BadParameter("by", "version", fmt.Sprintf("none, or one version by the parameter version, because there are more than %d versions and pages", insight.MaxFunnelRows))
		}
		return body, err
	})
}

// answers is the operation entries-answers.
func (a *API) answers(w http.ResponseWriter, r *http.Request) error {
	q, filter, err := insightQuery(r, "key")
	if err != nil {
		return err
	}
	needEmbeddable(q)
	ask := insight.AnswersQuestion{Filter: filter, Key: q.Identifier("key")}
	return a.answer(w, r, q, filter, func(from Insights) ([]byte, error) { return from.Answers(r.Context(), ask) })
}

// insightQuery reads the filters that all insights have. own are the further parameters of one.
func insightQuery(r *http.Request, own ...string) (*httpapi.Query, insight.Filter, error) {
	project, err := httpapi.PathIdentifier(r, "projectId")
	if err != nil {
		return nil, insight.Filter{}, err
	}
	q := httpapi.ParseQuery(r, append(own, "embeddable_id", "version",
		"created_after", "created_before", "updated_after", "updated_before")...)
	f := insight.Filter{
		ProjectID:     project,
		EmbeddableID:  q.Identifier("embeddable_id"),
		CreatedAfter:  q.Time("created_after", wire.BeforeAll),
		CreatedBefore: q.Time("created_before", wire.AfterAll),
		UpdatedAfter:  q.Time("updated_after", wire.BeforeAll),
		UpdatedBefore: q.Time("updated_before", wire.AfterAll),
	}
	if q.Has("version") {
		version := int64(q.Int("version", 0, math.MinInt64, math.MaxInt64))
		f.Version = &version
	}
	return q, f, nil
}

// needEmbeddable refuses a question about no embeddable: pages and keys of several have nothing in common.
func needEmbeddable(q *httpapi.Query) {
	if !q.Has("embeddable_id") {
		q.Fail("embeddable_id", "the id of an embeddable")
	}
}

// answer answers with the result of read. Its version is the project's newest number. This is read first and from the same
// database. So the data is at least as new as its version.
func (a *API) answer(w http.ResponseWriter, r *http.Request, q *httpapi.Query, f insight.Filter, read func(Insights) ([]byte, error)) error {
	if err := q.Err(); err != nil {
		return err
	}
	from := a.insights()
	version, err := from.Version(r.Context(), f.ProjectID)
	if err != nil {
		return err
	}
	return httpapi.WriteVersioned(w, r, strconv.FormatInt(version, 10), func() ([]byte, error) { return read(from) })
}
