package api

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/routes"
)

// holders are the services that have a part of a project, in the order in which the edge removes the parts. Region is
// first, because region revokes the project's keys.
var holders = []routes.Service{routes.Region, routes.Entries, routes.Embeddables, routes.Experiments}

// removeProject removes a project from the services that have an address, one after the other, and answers with the
// sums of their counts. If the answer has "more", the client must repeat the request. If a service fails or region has
// no address, the answer is Unavailable, and the later services keep their data. The client may repeat such a request
// too. Region checks the request, so a refusal by region is the answer.
func (e *Edge) removeProject(w http.ResponseWriter, r *http.Request) error {
	if e.services[routes.Region] == nil {
		return apierr.New(apierr.Unavailable, "No project can be removed: EDGE_SERVICES has no address of region, which revokes the keys.")
	}
	counts := map[string]any{}
	for _, name := range holders {
		s := e.services[name]
		if s == nil {
			continue
		}
		status, header, body, err := s.remove(r)
		if err == nil && name == routes.Region && status >= 400 && status < 500 {
			for _, field := range []string{"Content-Type", "Link", "Retry-After", "Www-Authenticate"} {
				w.Header()[field] = header[field]
			}
			w.WriteHeader(status)
			_, _ = w.Write(body) // the client may have disconnected
			return nil
		}
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("it answered %d: %.500s", status, body)
		}
		if err == nil {
			err = add(counts, body)
		}
		if err != nil {
			if r.Context().Err() != nil {
				return err // the client disconnected
			}
			return apierr.New(apierr.Unavailable, fmt.Sprintf("The service %s did not remove its part of the project%s. Repeat the request.", name, quoted(body))).
				After(time.Second).Because(err)
		}
	}
	sums, err := json.Marshal(counts)
	if err != nil {
		return err
	}
	httpapi.WriteEncoded(w, append(sums, '\n'))
	return nil
}

// maxRemoved is how much of a service's answer to a removal the edge reads, in bytes. The answer has a few counts.
const maxRemoved = 64 << 10

// maxQuoted is the longest message of a service that the edge quotes, in bytes.
const maxQuoted = 500

// quoted returns the message of an error body after a colon, without its last full stop. quoted returns "" for other
// bodies, and for a message longer than maxQuoted.
func quoted(body []byte) string {
	var e struct {
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal(body, &e); err != nil || e.Error.Code == "" || e.Error.Message == "" || len(e.Error.Message) > maxQuoted {
		return ""
	}
	return ": " + strings.TrimSuffix(e.Error.Message, ".")
}

// remove sends the client's removal r to the service, and reads up to maxRemoved bytes of the answer. Of the client's
// headers, remove passes on the key alone.
func (s *service) remove(r *http.Request) (status int, header http.Header, body []byte, err error) {
	u := *r.URL
	u.Scheme, u.Host = "http", s.address
	out := (&http.Request{Method: r.Method, URL: &u, Host: r.Host, Header: http.Header{auth.KeyHeader: r.Header[auth.KeyHeader]}}).WithContext(r.Context())
	s.introduce(r.Context(), out.Header, httpapi.InfoFrom(r.Context()))
	answer, err := s.edge.toServices.RoundTrip(out)
	if err != nil {
		return 0, nil, nil, s.fault(r, nil, err)
	}
	defer answer.Body.Close()
	body, err = io.ReadAll(io.LimitReader(answer.Body, maxRemoved))
	return answer.StatusCode, answer.Header, body, err
}

// add adds the counts in body, the answer of one service, to sums. A boolean in sums is true if any service answered
// true.
func add(sums map[string]any, body []byte) error {
	var part map[string]any
	if err := json.Unmarshal(body, &part); err != nil {
		return fmt.Errorf("the counts of a removal: %w", err)
	}
	for field, value := range part {
		switch v := value.(type) {
		case float64:
			before, _ := sums[field].(int64)
			sums[field] = before + int64(v)
		case bool:
			before, _ := sums[field].(bool)
			sums[field] = before || v
		}
	}
	return nil
}
