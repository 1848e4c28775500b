package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// List identifies one list of the API with its filters, for [Client.Raw] and [Client.JSON]. The method List of each
// query returns a List, for example [EntryQuery.List], and [ListAt] returns the List at a path.
type List struct {
	path   string
	values url.Values
}

// String returns the path of the list with its filters, as [ListAt] takes it. Equal lists have equal texts.
func (l List) String() string {
	if len(l.values) == 0 {
		return l.path
	}
	return l.path + "?" + l.values.Encode()
}

// List returns the list of projectID's entries that q selects, for [Client.Raw] and [Client.JSON].
func (q EntryQuery) List(projectID string) List {
	return List{path("projects", projectID, "entries"), valuesOf(q)}
}

// List returns the list of the entry's events, in the order that q selects, for [Client.Raw] and [Client.JSON].
func (q EventQuery) List(projectID, entryID string) List {
	return List{path("projects", projectID, "entries", entryID, "events"), valuesOf(q)}
}

// List returns the list of projectID's entries that q selects, with their page views, for [Client.Raw] and
// [Client.JSON].
func (q PageViewQuery) List(projectID string) List {
	return List{path("projects", projectID, "entries-page-views"), valuesOf(q)}
}

// List returns the list of projectID's embeddables, ordered by id, for [Client.Raw] and [Client.JSON].
func (q EmbeddableQuery) List(projectID string) List {
	return List{path("projects", projectID, "embeddables"), valuesOf(q)}
}

// List returns the list of the embeddable's versions, in the order that q selects, for [Client.Raw] and [Client.JSON].
func (q VersionQuery) List(projectID, embeddableID string) List {
	return List{path("projects", projectID, "embeddables", embeddableID, "versions"), valuesOf(q)}
}

// List returns the list of projectID's experiments that q selects, for [Client.Raw] and [Client.JSON].
func (q ExperimentQuery) List(projectID string) List {
	return List{path("projects", projectID, "experiments"), valuesOf(q)}
}

// RawPage is one page of a list, with the bytes of the answer instead of decoded records. [Client.Raw] passes a
// RawPage to its callback.
type RawPage struct {
	// Body contains one JSON record a line. If the connection breaks within the page, the error of Read has
	// [ErrIncomplete] in its chain.
	Body io.Reader
	// NextCursor is the cursor of the next page; empty on the last page. A change feed has a NextCursor on every page.
	NextCursor string
	// Current reports that the list had no next page when the server answered.
	Current bool
	// LastSeq is the number of the newest change, in a change feed and in lists that take ChangedAfter; otherwise 0.
	LastSeq int64
	// RetryAfter is how long the server asks the client to wait before the next page. [Client.Raw] waits that long.
	RetryAfter time.Duration
	// RequestID is the answer's header X-Request-Id, by which the operator finds the request in the logs.
	RequestID string
}

// page returns l with the query parameters of the page that begins at cursor. A cursor replaces the parameter after. A limit
// of 0 leaves the length of the page to the server.
func (l List) page(cursor string, limit int) List {
	values := url.Values{}
	maps.Copy(values, l.values)
	if limit > 0 {
		values.Set("limit", strconv.Itoa(limit))
	}
	if cursor != "" {
		values.Del("after")
		values.Set("cursor", cursor)
	}
	return List{l.path, values}
}

// Raw reads one page of a list and passes the page to receive. cursor is where the page begins; "" is the beginning of
// the list. limit is the greatest number of records; 0 is the server's default.
//
// If the transfer breaks, Raw may call receive again with the page from its beginning, and receive must discard the
// earlier part. receive must return the errors of reading Body. Other errors of receive are final. If the server asks
// to wait before the next page, Raw returns after that wait.
func (c *Client) Raw(ctx context.Context, list List, cursor string, limit int, receive func(RawPage) error) error {
	var page RawPage
	err := c.get(ctx, list.page(cursor, limit), "application/x-ndjson", func(r *http.Response) (err error) {
		page = RawPage{
			Body:       &lines{r: r.Body},
			NextCursor: r.Header.Get("X-Next-Cursor"),
			Current:    r.Header.Get("Link") == "",
			RetryAfter: RetryAfter(r.Header, time.Now()),
			RequestID:  r.Header.Get("X-Request-Id"),
		}
		if last := r.Header.Get("X-Last-Seq"); last != "" {
			if page.LastSeq, err = strconv.ParseInt(last, 10, 64); err != nil {
				return fmt.Errorf("X-Last-Seq: %w", err)
			}
		}
		return receive(page)
	})
	if err == nil && page.RetryAfter > 0 {
		err = c.sleep(ctx, page.RetryAfter)
	}
	return err
}

// JSON reads one page of a list and returns the body of the answer. The body is a JSON array, or an object where the
// API has no array. nextCursor is empty on the last page. An answer of more than 256 MiB is an error.
func (c *Client) JSON(ctx context.Context, list List, cursor string, limit int) (body []byte, nextCursor string, err error) {
	err = c.get(ctx, list.page(cursor, limit), "application/json", func(r *http.Response) error {
		nextCursor = r.Header.Get("X-Next-Cursor")
		body, err = readBody(r.Body)
		return err
	})
	return body, nextCursor, err
}

func (c *Client) get(ctx context.Context, list List, accept string, receive func(*http.Response) error) error {
	return c.do(ctx, request{method: http.MethodGet, path: list.String(), accept: accept}, func(r *http.Response) error {
		if err := checkDelimited(r); err != nil {
			return err
		}
		return receive(r)
	})
}

// checkDelimited returns an error for a body that only the end of the connection ends (RFC 9112, section 6.3). The
// client could not detect that such a body is truncated. A compressed body passes, because its format detects
// truncation.
func checkDelimited(r *http.Response) error {
	if r.ProtoMajor == 1 && r.ContentLength < 0 && len(r.TransferEncoding) == 0 && !r.Uncompressed {
		return errors.New("the answer has neither length nor chunks, so its end cannot be verified: a proxy in between speaks HTTP/1.0")
	}
	return nil
}

// lines is a reader of NDJSON. Read returns an error if the NDJSON ends within a line.
type lines struct {
	r    io.Reader
	last byte
	some bool
}

func (l *lines) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if n > 0 {
		l.last, l.some = p[n-1], true
	}
	if err == io.EOF && l.some && l.last != '\n' {
		err = &brokenBody{io.ErrUnexpectedEOF}
	}
	return n, err
}

// Page is one page of a list with decoded records, and the cursor of the next page.
type Page[T any] struct {
	Records []T
	// NextCursor is the cursor of the next page; empty on the last page.
	NextCursor string
	// LastSeq is the number of the newest change, in lists that take ChangedAfter; otherwise 0. Of several pages, the
	// number of the first is for the next ChangedAfter.
	LastSeq int64
}

// readPage reads one page of a list from cursor on, and decodes its records.
func readPage[T any](ctx context.Context, c *Client, list List, cursor string, limit int) (Page[T], error) {
	var page Page[T]
	err := c.Raw(ctx, list, cursor, limit, func(raw RawPage) (err error) {
		page = Page[T]{NextCursor: raw.NextCursor, LastSeq: raw.LastSeq}
		page.Records, err = decodeLines[T](raw.Body)
		return err
	})
	return page, err
}

// decodeLines reads and decodes a page of NDJSON, one record a line. The error for a line that cannot be decoded has
// the number of the line in the page, from 1.
func decodeLines[T any](r io.Reader) ([]T, error) {
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	var records []T
	for line := range bytes.Lines(body) {
		var record T
		if err := json.Unmarshal(line, &record); err != nil {
			return nil, fmt.Errorf("record %d of the page: %w", len(records)+1, err)
		}
		records = append(records, record)
	}
	return records, nil
}

// walk returns an iterator over the records of all pages of a list, which requests each page when needed. An error
// ends the iteration as the last item.
func walk[T any](ctx context.Context, c *Client, list List, p Paging) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		cursor, got := p.Cursor, 0
		for {
			page, err := readPage[T](ctx, c, list, cursor, p.size(got))
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, record := range page.Records {
				if !yield(record, nil) {
					return
				}
			}
			got += len(page.Records)
			cursor = page.NextCursor
			if cursor == "" || p.Limit > 0 && got >= p.Limit {
				return
			}
		}
	}
}
