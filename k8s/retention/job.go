package retention

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/manifests"
)

// job is one run of the retention job: its clients of the services, its start time and its default retention.
type job struct {
	entries     *client.Administrator
	embeddables *client.Administrator // nil: the job removes no definitions
	log         *slog.Logger
	now         time.Time
	days        int // of projects whose Project sets none; 0: for ever
}

// run removes the old entries of all due projects, one request for each project in turn. So a large project does not
// hold the others up. run continues after a failed project, and its error then has the number of failed projects. When
// ctx ends, the unfinished projects count as failed. run stops at once if the entries service refuses the key. At the end
// run calls definitions.
func (j *job) run(ctx context.Context, projects []v1alpha1.Project) error {
	due := j.due(ctx, projects)
	failed := 0
	var all client.Removed
	waiting := make([]*purge, len(due))
	for i, p := range due {
		waiting[i] = j.purge(p)
	}
	for len(waiting) > 0 && ctx.Err() == nil {
		p := waiting[0]
		waiting = waiting[1:]
		one, err := j.entries.PurgeFrom(ctx, p.project, p.before, false, p.cursor)
		p.entries, p.events, p.cursor = p.entries+one.Entries, p.events+one.Events, one.Cursor
		all.Entries, all.Events = all.Entries+one.Entries, all.Events+one.Events
		counts := []any{slog.Int("entries", p.entries), slog.Int("events", p.events)}
		switch {
		case err != nil:
			failed++
			p.log.ErrorContext(ctx, "could not remove all old entries of a project", append(counts, slog.Any("error", err))...)
			if refusesKey(err) {
				return fmt.Errorf("the entries service does not accept the key RETENTION_ADMIN_API_KEY; allowed: a key of its ADMIN_API_KEYS, without the name: %w", err)
			}
		case one.Unfinished():
			waiting = append(waiting, p)
		default:
			p.log.InfoContext(ctx, "removed the old entries of a project", counts...)
		}
	}
	if n := len(waiting); n > 0 {
		failed += n
		j.log.ErrorContext(ctx, "the time is over: the job did not finish some projects", slog.Int("projects", n), slog.Any("error", context.Cause(ctx)))
	}
	j.log.InfoContext(ctx, "done", slog.Int("projects", len(due)), slog.Int("failed", failed),
		slog.Int("entries", all.Entries), slog.Int("events", all.Events))
	j.definitions(ctx, due)
	if failed > 0 {
		return fmt.Errorf("%d of %d projects failed", failed, len(due))
	}
	return nil
}

// refusesKey reports whether err is the answer of a service that does not accept the job's key, for any project.
func refusesKey(err error) bool {
	refused, ok := errors.AsType[*client.Error](err)
	return ok && refused.Status == http.StatusUnauthorized
}

// definitions removes the definitions of embeddables to which nothing refers, from all due projects. No reader sees these
// definitions. So a failure is no failure of the job: definitions warns, and leaves the rest of the project to the next run.
func (j *job) definitions(ctx context.Context, due []*v1alpha1.Project) {
	if j.embeddables == nil {
		return
	}
	removed := 0
	for _, p := range due {
		for more := ctx.Err() == nil; more; {
			one, err := j.embeddables.PurgeDefinitions(ctx, p.Spec.ProjectID, false)
			if err != nil {
				j.log.WarnContext(ctx, "could not remove all definitions of embeddables that nothing refers to; the next run tries again",
					slog.String("project_id", p.Spec.ProjectID), slog.Int("definitions", removed), slog.Any("error", err))
				if refusesKey(err) {
					return
				}
				break
			}
			removed, more = removed+one.Definitions, one.More
		}
	}
	j.log.InfoContext(ctx, "removed the definitions of embeddables that nothing refers to", slog.Int("definitions", removed))
}

// due returns the Projects whose project has a retention, in the order of the projects' ids. It skips and logs each
// Project that does not declare its project. It also skips a Project that the operator has not accepted yet, because a
// removal is final.
func (j *job) due(ctx context.Context, projects []v1alpha1.Project) []*v1alpha1.Project {
	byID := map[string][]v1alpha1.Project{}
	for _, p := range projects {
		byID[p.Spec.ProjectID] = append(byID[p.Spec.ProjectID], p)
	}
	var due []*v1alpha1.Project
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		declaring := manifests.Declaring(byID[id])
		for i := range byID[id] {
			p := &byID[id][i]
			switch {
			case declaring == nil || declaring.UID != p.UID:
				j.skip(ctx, p, "it is in conflict: another Project came first")
			case manifests.StandingOf(p.Status.Conditions, p.Generation) != manifests.Accepted:
				j.skip(ctx, p, "the operator has not accepted it yet")
			case j.daysOf(p) > 0:
				due = append(due, p)
			}
		}
	}
	return due
}

func (j *job) skip(ctx context.Context, p *v1alpha1.Project, reason string) {
	j.log.WarnContext(ctx, "skipped a Project", slog.String("namespace", p.Namespace), slog.String("name", p.Name),
		slog.String("project_id", p.Spec.ProjectID), slog.String("reason", reason))
}

// daysOf returns how many days entries of p's project are kept: the Project's retentionDays, or else the job's default.
// 0 means for ever.
func (j *job) daysOf(p *v1alpha1.Project) int { return cmp.Or(int(p.Spec.RetentionDays), j.days) }

// purge is the removal of one project's old entries: where the next request goes on, and what is removed so far.
type purge struct {
	project         string
	before          time.Time
	cursor          string
	entries, events int
	log             *slog.Logger
}

// purge returns the removal of the entries that are older than the retention of p's project.
func (j *job) purge(p *v1alpha1.Project) *purge {
	days := j.daysOf(p)
	before := j.now.Add(-time.Duration(days) * 24 * time.Hour).UTC().Truncate(time.Second)
	return &purge{project: p.Spec.ProjectID, before: before, log: j.log.With(
		slog.String("namespace", p.Namespace), slog.String("name", p.Name), slog.String("project_id", p.Spec.ProjectID),
		slog.Int("days", days), slog.Time("updated_before", before))}
}
