package client

import "time"

// Entry is one submission of a visitor to an embeddable, such as the answers to a form.
type Entry struct {
	EntryID      string    `json:"entry_id"`
	GroupID      string    `json:"group_id"`
	ProjectID    string    `json:"project_id"`
	EmbeddableID string    `json:"embeddable_id"`
	ContactID    string    `json:"contact_id"`
	CreatedAt    time.Time `json:"created_at"`
	UpdatedAt    time.Time `json:"updated_at"`
	// Data is the visitor's input as JSON text.
	Data string `json:"entry_data"`
}

// Event is something that happened in an entry, such as a page view. A nil field is null in the API: the source did
// not set the field.
type Event struct {
	EntryID          string    `json:"entry_id"`
	ContactID        string    `json:"contact_id"`
	ProjectID        string    `json:"project_id"`
	GroupID          string    `json:"group_id"`
	EmbeddableID     string    `json:"embeddable_id"`
	VersionNumber    *int64    `json:"embeddable_version_number"`
	Timestamp        time.Time `json:"timestamp"`
	PageID           *string   `json:"page_id"`
	PageKey          *string   `json:"page_key"`
	PageIndex        *int64    `json:"page_index"`
	MaxPageID        *string   `json:"max_page_id"`
	MaxPageKey       *string   `json:"max_page_key"`
	MaxPageIndex     *int64    `json:"max_page_index"`
	TotalPages       *int64    `json:"total_pages"`
	EventType        string    `json:"event_type"`
	ViewType         *string   `json:"view_type"`
	CustomEventName  *string   `json:"custom_event_name"`
	CustomEventProps *string   `json:"custom_event_props"`
}

// EntryPageViews is an entry with the views of its pages, the oldest first. The entry's data is left out.
type EntryPageViews struct {
	EntryID      string     `json:"entry_id"`
	GroupID      string     `json:"group_id"`
	ProjectID    string     `json:"project_id"`
	EmbeddableID string     `json:"embeddable_id"`
	ContactID    string     `json:"contact_id"`
	CreatedAt    time.Time  `json:"created_at"`
	UpdatedAt    time.Time  `json:"updated_at"`
	PageViews    []PageView `json:"page_views"`
}

// PageView is one view of a page of an embeddable by the visitor of an entry.
type PageView struct {
	Timestamp time.Time `json:"timestamp"`
	PageID    string    `json:"page_id"`
	PageKey   string    `json:"page_key"`
	PageIndex int64     `json:"page_index"`
	// URL is the address of the page; nil if it is unknown, or without PageViewQuery.IncludeURLs.
	URL *string `json:"url,omitempty"`
}

// Embeddable describes a flow of pages that a customer embeds in a website, without the content of the flow.
type Embeddable struct {
	EmbeddableID string `json:"embeddable_id"`
	Title        string `json:"title"`
	GroupID      string `json:"group_id"`
	ProjectID    string `json:"project_id"`
}

// EmbeddableWithDefinition is an embeddable with the content that visitors get in production.
type EmbeddableWithDefinition struct {
	Embeddable
	// Definition is the content in production, as JSON text.
	Definition string `json:"json_string_prod"`
}

// EmbeddableVersion describes a saved state of an embeddable, without the content. A version never changes.
type EmbeddableVersion struct {
	EmbeddableID string    `json:"embeddable_id"`
	Number       int64     `json:"version_number"`
	SavedAt      time.Time `json:"saved_at"`
}

// EmbeddableVersionWithDefinition is a version of an embeddable with the content that was saved.
type EmbeddableVersionWithDefinition struct {
	EmbeddableVersion
	// Definition is the saved content, as JSON text.
	Definition string `json:"json_string"`
}

// ExperimentStatus is the stage of an experiment, from [Draft] to [Completed] or [Discarded].
type ExperimentStatus string

// The statuses that an experiment can have. The API returns the status as this text.
const (
	Draft        ExperimentStatus = "draft"
	Running      ExperimentStatus = "running"
	Paused       ExperimentStatus = "paused"
	WinnerPicked ExperimentStatus = "winner_picked"
	Completed    ExperimentStatus = "completed"
	Discarded    ExperimentStatus = "discarded"
)

// Experiment is a split test between variants of flows. A nil field is null in the API. A nil list is null, and an
// empty list is [].
type Experiment struct {
	ID string `json:"id"`
	// ExperimentID is the same as ID. The API has the id twice, as id and as experimentId.
	ExperimentID    string    `json:"experimentId"`
	FlowID          string    `json:"flowId"`
	Name            *string   `json:"name"`
	Hypothesis      *string   `json:"hypothesis"`
	ImpactMetrics   []string  `json:"impact_metrics"`
	NoImpactMetrics []string  `json:"no_impact_metrics"`
	CreatedAt       time.Time `json:"created_at"`
	UpdatedAt       time.Time `json:"updated_at"`
	Observations    *string   `json:"observations"`
	Outcome         *string   `json:"outcome"`
	// Attachments is the JSON text of an array of objects with url and name.
	Attachments *string `json:"attachments"`
	// Variants is the JSON text of an object with the variants by key.
	Variants *string  `json:"variants"`
	FlowIDs  []string `json:"flow_ids"`
	// PausedShowingVariant is the key of the variant that visitors see while the experiment is paused. WinnerVariant
	// is the key of the variant that won.
	PausedShowingVariant *string           `json:"paused_showing_variant"`
	WinnerVariant        *string           `json:"winner_variant"`
	Status               *ExperimentStatus `json:"status"`
}

// ExperimentStatusChange is one change of an experiment's status, with its times at the source and at the server.
type ExperimentStatusChange struct {
	// Status is the status after the change; nil if the experiment had no status then.
	Status *ExperimentStatus `json:"status"`
	// ChangedAt is the time of the change at the source.
	ChangedAt time.Time `json:"changed_at"`
	// RecordedAt is the time at which the server recorded the change.
	RecordedAt time.Time `json:"recorded_at"`
}

// Project holds the public data of a project: its id and its title.
type Project struct {
	ID    string `json:"id"`
	Title string `json:"title"`
}

// Region is a project's time zone, and the zone's offset from UTC at a point in time.
type Region struct {
	// Name is the name of the zone in the tz database, such as Europe/Berlin.
	Name string `json:"region"`
	// OffsetMinutes is the offset in minutes east of UTC, including daylight saving time.
	OffsetMinutes int `json:"offsetInMinutes"`
	// Source reports whether the region was set for the project or is the default.
	Source RegionSource `json:"-"`
}

// RegionSource is where a project's region comes from: [RegionOfProject] or [DefaultRegion].
type RegionSource string

// The sources of a project's region, as the server reports them in the header X-Region-Source.
const (
	// RegionOfProject means that the region was set for the project, so the region is not a default.
	RegionOfProject RegionSource = "project"
	// DefaultRegion means that the server returned its default, because the project has no region or is unknown. The
	// project's id may be mistyped.
	DefaultRegion RegionSource = "default"
)
