package api

import (
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/wire"
)

// lookUpRegion serves POST /api/projects/region: the zone of a project and the zone's offset. The answer depends on
// the time, so no cache may store it.
func (a *API) lookUpRegion(w http.ResponseWriter, r *http.Request) error {
	if err := httpapi.ParseQuery(r).Err(); err != nil {
		return err
	}
	if err := httpapi.CheckJSON(r.Header); err != nil {
		return err
	}
	body, err := httpapi.ReadBody(w, r)
	if err != nil {
		return err
	}
	asked, err := parseLookUp(body, a.now)
	if err != nil {
		return err
	}
	httpapi.InfoFrom(r.Context()).ProjectID = asked.projectID
	z, err := a.regions.Get(r.Context(), asked.projectID)
	if err != nil {
		return err
	}
	answer := make([]byte, 0, 96)
	answer = append(answer, `{"region":`...)
	answer = wire.AppendText(answer, []byte(z.Name()))
	answer = append(answer, `,"offsetInMinutes":`...)
	answer = strconv.AppendInt(answer, int64(z.OffsetMinutes(asked.at)), 10)
	answer = append(answer, '}', '\n')
	source := "project"
	if z.IsDefault() {
		source = "default"
	}
	w.Header().Set("X-Region-Source", source)
	httpapi.WriteEncoded(w, answer)
	return nil
}

// lookUp is a request for the region of a project, and for the offset at a time.
type lookUp struct {
	projectID string
	at        time.Time
}

// parseLookUp parses the body of a look-up of a region. If the body has no "at", the time is now.
func parseLookUp(body []byte, now func() time.Time) (lookUp, error) {
	var fields struct {
		ProjectID jsontext.Value `json:"projectId"`
		At        jsontext.Value `json:"at"`
	}
	if err := httpapi.DecodeJSON(body, &fields, lookUpAllowed); err != nil {
		return lookUp{}, err
	}
	if fields.ProjectID == nil {
		return lookUp{}, badLookUp("has no projectId")
	}
	id, ok := httpapi.JSONText(fields.ProjectID)
	if !ok || !wire.ValidIdentifier(id) {
		return lookUp{}, badLookUp("has a projectId that is not a text of 1 to 256 bytes without NUL")
	}
	if fields.At == nil {
		return lookUp{id, now()}, nil
	}
	at, ok := httpapi.JSONText(fields.At)
	micros, err := wire.ParseTime(at)
	if !ok || err != nil {
		return lookUp{}, badLookUp("has an at that is not a date and time")
	}
	return lookUp{id, wire.Time(micros)}, nil
}

// lookUpAllowed describes the allowed bodies of a look-up of a region in error messages.
const lookUpAllowed = `{"projectId": "…"}, with "at" (a date and time such as 2022-01-31T09:30:00Z) if you like`

// badLookUp returns the error for a body that a look-up of a region does not allow. The error has the reason why and
// the allowed bodies.
func badLookUp(why string) error { return httpapi.InvalidBody(why, lookUpAllowed) }
