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
