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

// List identifies one list of the API with its filters, for [Client.Raw] and [Client.JSON]. These methods return one:
// [EntryQuery.List], [EventQuery.List], [PageViewQuery.List], [EmbeddableQuery.List],
// [VersionQuery.List], [ExperimentQuery.List], [ChangeQuery.List], [CountQuery.List], [FunnelQuery.List], [AnswerQuery.List].
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

// List returns the list of projectID's entries that q selects.
func (q EntryQuery) List(projectID string) List {
	return List{path("projects", projectID, "entries"), valuesOf(q)}
}

// List returns the list of the entry's events that q selects.
func (q EventQuery) List(projectID, entryID string) List {
	return List{path("projects", projectID, "entries", entryID, "events"), valuesOf(q)}
}

// List returns the list of page views that q selects.
func (q PageViewQuery) List(projectID string) List {
	return List{path("projects", projectID, "entries-page-views"), valuesOf(q)}
}

// List returns the list of projectID's embeddables.
func (q EmbeddableQuery) List(projectID string) List {
	return List{path("projects", projectID, "embeddables"), valuesOf(q)}
}

// List returns the list of the embeddable's versions that q selects.
func (q VersionQuery) List(projectID, embeddableID string) List {
	return List{path("projects", projectID, "embeddables", embeddableID, "versions"), valuesOf(q)}
}

// List returns the list of projectID's experiments that q selects.
func (q ExperimentQuery) List(projectID string) List {
	return List{path("projects", projectID, "experiments"), valuesOf(q)}
}

// RawPage is one page of a list as the bytes of the answer.
type RawPage struct {
	// Body contains one JSON record a line. If the connection breaks within the page, its error has [ErrIncomplete] in
	// its chain.
	Body io.Reader
	// NextCursor starts the next page; empty on the last. A change feed has one on every page.
	NextCursor string
	// Current reports that there is no next page at the moment.
	Current bool
	// LastSeq is the number of the newest change, in a change feed.
	LastSeq int64
	// RetryAfter is how long the server asked to wait before the next page. [Client.Raw] waits that long.
	RetryAfter time.Duration
	// RequestID is the answer's X-Request-Id.
	RequestID string
}

// page returns the parameters of the page from cursor on.
func (l List) page(cursor string, limit int) url.Values {
	values := url.Values{}
	maps.Copy(values, l.values)
	if limit > 0 {
		values.Set("limit", strconv.Itoa(limit))
	}
	if cursor != "" {
		values.Del("after")
		values.Set("cursor", cursor)
	}
	return values
}

// Raw reads one page of at most limit records (0: the server's default) from cursor on ("" is the beginning), and passes
// it to receive. If the transfer breaks, Raw calls receive again with the page from its beginning, and receive must
// discard the earlier part. receive must return the errors of Body. Its other errors are final. If the server asks to
// wait before the next page, Raw returns after that wait.
func (c *Client) Raw(ctx context.Context, list List, cursor string, limit int, receive func(RawPage) error) error {
	values := list.page(cursor, limit)
	var page RawPage
	err := c.get(ctx, list.path, values, "application/x-ndjson", func(r *http.Response) (err error) {
		if err := checkDelimited(r); err != nil {
			return err
		}
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

// JSON reads one page like [Client.Raw], but returns the whole page as a JSON array, the default format of the API. Use it
// for pages that fit into memory.
func (c *Client) JSON(ctx context.Context, list List, cursor string, limit int) (body []byte, nextCursor string, err error) {
	values := list.page(cursor, limit)
	err = c.get(ctx, list.path, values, "application/json", func(r *http.Response) error {
		if err := checkDelimited(r); err != nil {
			return err
		}
		nextCursor = r.Header.Get("X-Next-Cursor")
		body, err = readBody(r.Body)
		return err
	})
	return body, nextCursor, err
}

func (c *Client) get(ctx context.Context, path string, values url.Values, accept string, receive func(*http.Response) error) error {
	target := c.base + path
	if len(values) > 0 {
		target += "?" + values.Encode()
	}
	build := func(ctx context.Context) (*http.Request, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Accept", accept)
		return req, nil
	}
	return c.do(ctx, build, receive)
}

// checkDelimited refuses a body that ends with the connection (RFC 9112, section 6.3), because the client could not detect
// a truncated one. A compressed body has a check of its own.
func checkDelimited(r *http.Response) error {
	if r.ProtoMajor == 1 && r.ContentLength < 0 && len(r.TransferEncoding) == 0 && !r.Uncompressed {
		return errors.New("the answer has neither length nor chunks, so its end cannot be verified: a proxy in between speaks HTTP/1.0")
	}
	return nil
}

// lines reads NDJSON and fails if it ends within a line.
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

// Page is one page of a list.
type Page[T any] struct {
	Records []T
	// NextCursor starts the next page; empty on the last.
	NextCursor string
}

// readPage reads one page of records.
func readPage[T any](ctx context.Context, c *Client, list List, cursor string, limit int) (Page[T], error) {
	var page Page[T]
	err := c.Raw(ctx, list, cursor, limit, func(raw RawPage) (err error) {
		page = Page[T]{NextCursor: raw.NextCursor}
		page.Records, err = decodeLines[T](raw.Body)
		return err
	})
	return page, err
}

// decodeLines decodes a page of NDJSON.
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

// walk iterates over the records of all pages of a list. If an error ends the iteration, it is in the last pair.
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
