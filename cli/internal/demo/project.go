package demo

import "io"

// Project is a project in the form of the ingest endpoint. Region is a zone of the tz database, or nil for none.
type Project struct {
	ID     string  `json:"id"`
	Title  string  `json:"title"`
	Region *string `json:"region"`
}

// WriteProjects writes the demo project as one line of NDJSON.
func WriteProjects(w io.Writer) error {
	return writeEach(w, []Project{{ID: ProjectID, Title: "Homes and care", Region: new("Europe/Berlin")}})
}
