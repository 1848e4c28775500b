package demo

import "io"

// Project is a project for the ingest endpoint.
type Project struct {
	ID     string  `json:"id"`
	Title  string  `json:"title"`
	Region *string `json:"region"`
}

// WriteProjects writes the project as NDJSON.
func WriteProjects(w io.Writer) error {
	return writeEach(w, []Project{{ID: ProjectID, Title: "Homes and care", Region: new("Europe/Berlin")}})
}
