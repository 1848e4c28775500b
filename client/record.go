package client

import "time"

// Entry is one submission of a user.
type Entry struct {
	EntryID      string    `json:"entry_id"`
	GroupID      string    `json:"group_id"`
	ProjectID    string    `json:"project_id"`
	EmbeddableID string    `json:"embeddable_id"`
	ContactID    string    `json:"contact_id"`
	CreatedAt    time.Time `json:"created_at"`
	UpdatedAt    time.Time `json:"updated_at"`
	// Data is the user's input as JSON text.
	Data string `json:"entry_data"`
}

// Event is one event of an entry. A nil field is null: the source did not set it.
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

// EntryPageViews is an entry with the pages that it viewed, oldest first.
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

// PageView is one view of a page.
type PageView struct {
	Timestamp time.Time `json:"timestamp"`
	PageID    string    `json:"page_id"`
	PageKey   string    `json:"page_key"`
	PageIndex int64     `json:"page_index"`
	// URL is the address of the page; nil if it is unknown, or without PageViewQuery.IncludeURLs.
	URL *string `json:"url,omitempty"`
}

// Embeddable is a flow that is embedded in pages.
type Embeddable struct {
	EmbeddableID string `json:"embeddable_id"`
	Title        string `json:"title"`
	GroupID      string `json:"group_id"`
	ProjectID    string `json:"project_id"`
}

// EmbeddableWithDefinition is an embeddable with its content.
type EmbeddableWithDefinition struct {
	Embeddable
	// Definition is the content in production, as JSON text.
	Definition string `json:"json_string_prod"`
}

// EmbeddableVersion is a saved state of an embeddable. It never changes.
type EmbeddableVersion struct {
	EmbeddableID string    `json:"embeddable_id"`
	Number       int64     `json:"version_number"`
	SavedAt      time.Time `json:"saved_at"`
}

// EmbeddableVersionWithDefinition is a version with its content.
type EmbeddableVersionWithDefinition struct {
	EmbeddableVersion
	// Definition is the saved content, as JSON text.
	Definition string `json:"json_string"`
}

// ExperimentStatus is the status of an experiment.
type ExperimentStatus string

// The statuses.
const (
	Draft        ExperimentStatus = "draft"
	Running      ExperimentStatus = "running"
	Paused       ExperimentStatus = "paused"
	WinnerPicked ExperimentStatus = "winner_picked"
	Completed    ExperimentStatus = "completed"
	Discarded    ExperimentStatus = "discarded"
)

// Experiment is a split test between variants of flows. A nil field is null. A nil list differs from an empty one.
type Experiment struct {
	ID string `json:"id"`
	// ExperimentID is the same as ID.
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
	// PausedShowingVariant and WinnerVariant are keys of variants.
	PausedShowingVariant *string           `json:"paused_showing_variant"`
	WinnerVariant        *string           `json:"winner_variant"`
	Status               *ExperimentStatus `json:"status"`
}

// ExperimentStatusChange is a change of an experiment's status.
type ExperimentStatusChange struct {
	// Status is the new status; nil is none.
	Status *ExperimentStatus `json:"status"`
	// ChangedAt is the time of the change at the source.
	ChangedAt time.Time `json:"changed_at"`
	// RecordedAt is the time at which the server recorded the change.
	RecordedAt time.Time `json:"recorded_at"`
}

// Project holds the public data of a project.
type Project struct {
	ID    string `json:"id"`
	Title string `json:"title"`
}

// Region is a project's region, with its offset from UTC at a point in time.
type Region struct {
	// Name is a zone of the tz database.
	Name string `json:"region"`
	// OffsetMinutes is the offset in minutes east of UTC, including daylight saving time.
	OffsetMinutes int `json:"offsetInMinutes"`
	// Source reports whether the region is the project's own.
	Source RegionSource `json:"-"`
}

// RegionSource is the source of a region.
type RegionSource string

// The sources of regions.
const (
	// RegionOfProject is set for the project.
	RegionOfProject RegionSource = "project"
	// DefaultRegion applies because the project has no region or is unknown. Its id may be mistyped.
	DefaultRegion RegionSource = "default"
)
