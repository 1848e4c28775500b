package read

import (
	"strings"

	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/client"
)

// filterFlags select entries by update time and ids.
type filterFlags struct {
	Direction     string       `enum:"ASC,DESC,asc,desc," default:"" help:"ASC is oldest first, DESC newest first, which is the default." placeholder:"ASC|DESC"`
	UpdatedAfter  shell.Moment `help:"Only entries updated after this time: RFC 3339, or a date." placeholder:"TIME"`
	UpdatedBefore shell.Moment `help:"Only entries updated before this time." placeholder:"TIME"`
	EmbeddableID  string       `name:"embeddable-id" help:"Only entries of this embeddable." placeholder:"ID"`
	ContactID     string       `name:"contact-id" help:"Only entries of this contact." placeholder:"ID"`
	GroupID       string       `name:"group-id" help:"Only entries of this group." placeholder:"ID"`
	Completed     string       `enum:"true,false," default:"" help:"Only entries with a page view of their last page (true), or only the others (false)." placeholder:"true|false"`
}

// completed returns the value of the flag, or nil if it was not given.
func (f filterFlags) completed() *bool {
	if f.Completed == "" {
		return nil
	}
	is := f.Completed == "true"
	return &is
}

func (f filterFlags) direction() client.Direction {
	return client.Direction(strings.ToUpper(f.Direction))
}

// statusFlags select experiments.
type statusFlags struct {
	Status string `enum:"draft,running,paused,winner_picked,completed,discarded," default:"" help:"Only experiments with this status: draft, running, paused, winner_picked, completed or discarded." placeholder:"STATUS"`
}

func (f statusFlags) query() client.ExperimentQuery {
	return client.ExperimentQuery{Status: client.ExperimentStatus(f.Status)}
}

type entryFilterFlags struct {
	filterFlags
	CreatedAfter  shell.Moment `help:"Only entries created after this time." placeholder:"TIME"`
	CreatedBefore shell.Moment `help:"Only entries created before this time." placeholder:"TIME"`
	Sort          string       `enum:"updated_at,created_at," default:"" help:"updated_at, which is the default, or created_at." placeholder:"KEY"`
}

func (f entryFilterFlags) query() client.EntryQuery {
	return client.EntryQuery{
		Sort: client.Sort(f.Sort), Direction: f.direction(),
		CreatedAfter: f.CreatedAfter.Time, CreatedBefore: f.CreatedBefore.Time,
		UpdatedAfter: f.UpdatedAfter.Time, UpdatedBefore: f.UpdatedBefore.Time,
		EmbeddableID: f.EmbeddableID, ContactID: f.ContactID, GroupID: f.GroupID, Completed: f.completed(),
	}
}

type pageViewFilterFlags struct {
	filterFlags
	IncludeURLs bool `name:"include-urls" help:"With the URL of each page view."`
}

func (f pageViewFilterFlags) query() client.PageViewQuery {
	return client.PageViewQuery{
		Direction: f.direction(), UpdatedAfter: f.UpdatedAfter.Time, UpdatedBefore: f.UpdatedBefore.Time,
		EmbeddableID: f.EmbeddableID, ContactID: f.ContactID, GroupID: f.GroupID, Completed: f.completed(),
		IncludeURLs: f.IncludeURLs,
	}
}
