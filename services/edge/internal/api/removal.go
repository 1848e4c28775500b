package api

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/http/apierr"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/routes"
)

// holders are the services that have a part of a project, in the order in which it is removed. Region is first, because it
// revokes the project's keys.
var holders = []routes.Service{routes.Region, routes.Entries, routes.Embeddables, routes.Experiments}

// removeProject removes a project from all services, one after the other, and answers with the sums of their counts. With
// "more", the request is to be repeated. A service without an address is not installed. If a service fails, the answer is
// Unavailable, names it and quotes its error, and the rest keeps its data. The request may be repeated then, too. Region
// checks the request: its refusal is the answer.
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

// maxRemoved bounds the answer of a service, in bytes. It has a few counts.
const maxRemoved = 64 << 10

// maxQuoted is the longest message of a service that the edge quotes, in bytes.
const maxQuoted = 500

// quoted returns the message of an error body after a colon, without its last full stop. Other bodies, and those with a
// longer message, have none.
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

// remove sends the request to the service, and reads the answer.
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

// add adds the counts of one service to sums. Numbers are summed, and a true stays true.
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
