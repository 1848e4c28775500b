package read

import (
	"strings"

	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/client"
)

// filterFlags are the flags that select entries by time of update, ids and page views. The lists of entries and of
// page views have these flags.
type filterFlags struct {
	Direction     string       `enum:"ASC,DESC,asc,desc," default:"" help:"ASC is oldest first, DESC newest first, which is the default." placeholder:"ASC|DESC"`
	UpdatedAfter  shell.Moment `help:"Only entries updated after this time: RFC 3339, or a date." placeholder:"TIME"`
	UpdatedBefore shell.Moment `help:"Only entries updated before this time." placeholder:"TIME"`
	EmbeddableID  string       `name:"embeddable-id" help:"Only entries of this embeddable." placeholder:"ID"`
	ContactID     string       `name:"contact-id" help:"Only entries of this contact." placeholder:"ID"`
	GroupID       string       `name:"group-id" help:"Only entries of this group." placeholder:"ID"`
	Completed     completed    `enum:"true,false," default:"" help:"Only entries with a page view of their last page (true), or only the others (false)." placeholder:"true|false"`
	VersionNumber *int64       `help:"Only entries with a page view of this version. --completed and --furthest-page are then about its page views." placeholder:"N"`
	FurthestPage  *int64       `help:"Only entries whose furthest page has this index; with --embeddable-id." placeholder:"N"`
}

// completed is the value of --completed: true, false, or empty if the flag was not given.
type completed string

// is returns the value, or nil if the flag was not given.
func (c completed) is() *bool {
	if c == "" {
		return nil
	}
	is := c == "true"
	return &is
}

func (f filterFlags) direction() client.Direction {
	return client.Direction(strings.ToUpper(f.Direction))
}

// statusFlags are the flags that select experiments by their status.
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
	Answer        string       `help:"Only entries with this answer: JSON, such as '\"Yes\"' or 100." placeholder:"JSON"`
	AnswerKey     string       `help:"The key of entry_data that has the answer." placeholder:"KEY"`
	Search        string       `help:"Only entries in which each word of this text is in an answer or an id, in any letter case." placeholder:"TEXT"`
	Sort          string       `enum:"updated_at,created_at," default:"" help:"updated_at, which is the default, or created_at." placeholder:"KEY"`
}

func (f entryFilterFlags) query() client.EntryQuery {
	return client.EntryQuery{
		Sort: client.Sort(f.Sort), Direction: f.direction(),
		CreatedAfter: f.CreatedAfter.Time, CreatedBefore: f.CreatedBefore.Time,
		UpdatedAfter: f.UpdatedAfter.Time, UpdatedBefore: f.UpdatedBefore.Time,
		EmbeddableID: f.EmbeddableID, ContactID: f.ContactID, GroupID: f.GroupID, Completed: f.Completed.is(),
		Version: f.VersionNumber, FurthestPage: f.FurthestPage,
		Answer: f.Answer, AnswerKey: f.AnswerKey, Search: f.Search,
	}
}

type pageViewFilterFlags struct {
	filterFlags
	IncludeURLs bool `name:"include-urls" help:"With the URL of each page view."`
}

func (f pageViewFilterFlags) query() client.PageViewQuery {
	return client.PageViewQuery{
		Direction: f.direction(), UpdatedAfter: f.UpdatedAfter.Time, UpdatedBefore: f.UpdatedBefore.Time,
		EmbeddableID: f.EmbeddableID, ContactID: f.ContactID, GroupID: f.GroupID, Completed: f.Completed.is(),
		Version: f.VersionNumber, FurthestPage: f.FurthestPage,
		IncludeURLs: f.IncludeURLs,
	}
}
