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
	// Data is what the user entered: JSON, as the string that the API gives out.
	Data string `json:"entry_data"`
}

// Event is one thing that happened in an entry. A nil field was null: the source did not say.
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

// PageView is one page seen once.
type PageView struct {
	Timestamp time.Time `json:"timestamp"`
	PageID    string    `json:"page_id"`
	PageKey   string    `json:"page_key"`
	PageIndex int64     `json:"page_index"`
	// URL is where it was seen; nil unless asked for by PageViewQuery.IncludeURLs and known.
	URL *string `json:"url,omitempty"`
}

// Embeddable is a flow that is embedded in pages.
type Embeddable struct {
	EmbeddableID string `json:"embeddable_id"`
	Title        string `json:"title"`
	GroupID      string `json:"group_id"`
	ProjectID    string `json:"project_id"`
}

// EmbeddableWithDefinition is an embeddable with what it shows.
type EmbeddableWithDefinition struct {
	Embeddable
	// Definition is what is in production: JSON, as the string that the API gives out.
	Definition string `json:"json_string_prod"`
}

// EmbeddableVersion is a saved state of an embeddable. It never changes.
type EmbeddableVersion struct {
	EmbeddableID string    `json:"embeddable_id"`
	Number       int64     `json:"version_number"`
	SavedAt      time.Time `json:"saved_at"`
}

// EmbeddableVersionWithDefinition is a version with what it shows.
type EmbeddableVersionWithDefinition struct {
	EmbeddableVersion
	// Definition is what was saved: JSON, as the string that the API gives out.
	Definition string `json:"json_string"`
}

// ExperimentStatus is where an experiment stands.
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

// Experiment is a split test between variants of flows. A nil field was null, which for a list is
// another thing than an empty one.
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
	// Attachments is a JSON array of objects with url and name, as the string that the API gives out.
	Attachments *string `json:"attachments"`
	// Variants is a JSON object of the variants by their keys, as the string that the API gives out.
	Variants *string  `json:"variants"`
	FlowIDs  []string `json:"flow_ids"`
	// PausedShowingVariant and WinnerVariant are keys of variants.
	PausedShowingVariant *string           `json:"paused_showing_variant"`
	WinnerVariant        *string           `json:"winner_variant"`
	Status               *ExperimentStatus `json:"status"`
}

// ExperimentStatusChange is a change of an experiment's status.
type ExperimentStatusChange struct {
	// Status is where the experiment stood from then on; nil is none.
	Status *ExperimentStatus `json:"status"`
	// ChangedAt is when the source changed it.
	ChangedAt time.Time `json:"changed_at"`
	// RecordedAt is when the server recorded the change.
	RecordedAt time.Time `json:"recorded_at"`
}

// Project is what is public of a project.
type Project struct {
	ID    string `json:"id"`
	Title string `json:"title"`
}

// Region is a project's region and its offset from UTC at a moment.
type Region struct {
	// Name is a zone of the tz database.
	Name string `json:"region"`
	// OffsetMinutes is minutes east of UTC, daylight saving counted.
	OffsetMinutes int `json:"offsetInMinutes"`
}
