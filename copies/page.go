package copies

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/lectern-dev/lectern/client"
)

// longestRequest is the longest wait for changes that a request asks of the server. The API accepts no longer wait, and
// may answer sooner.
const longestRequest = 60 * time.Second

// pages reads pages of a feed that are bounded in bytes as well. The API bounds only the number of changes. So read
// gives up a page that grows too long, and requests the page again with fewer changes.
type pages struct {
	client    *client.Client
	projectID string
	mask      *Mask
	query     client.ChangeQuery
	most      int // greatest number of changes in a page
	bytes     int // greatest size of a page
	size      int // number of changes that the next request asks for
	decoder   *decoder
}

func newPages(o *Options, q client.ChangeQuery, most, bytes int) *pages {
	return &pages{client: o.Client, projectID: o.Source.ProjectID, mask: o.Mask, query: q, most: most, bytes: bytes, size: most, decoder: newDecoder()}
}

// page is a page of the feed, with the size of its changes in bytes.
type page struct {
	client.ChangePage
	bytes int
}

var errTooLong = errors.New("the page is too long")

// read returns the page after at, with its changes masked. If there are no changes, the server waits for some, at
// most as long as wait.
func (p *pages) read(ctx context.Context, at Position, wait time.Duration) (page, error) {
	for {
		next, err := p.try(ctx, at, wait)
		switch {
		case errors.Is(err, errTooLong):
			p.size = max(1, len(next.Changes)*3/4)
			continue
		case err == nil && next.bytes < p.bytes/4:
			p.size = min(p.most, 2*p.size)
		}
		return next, err
	}
}

func (p *pages) try(ctx context.Context, at Position, wait time.Duration) (next page, err error) {
	after := p.query.After
	if at.Seq > 0 {
		after = strconv.FormatInt(at.Seq, 10)
	}
	list := client.ChangeQuery{Types: p.query.Types, After: after, Wait: wait}.List(p.projectID)
	err = p.client.Raw(ctx, list, at.Cursor, p.size, func(raw client.RawPage) error {
		// Raw calls this function again after a broken transfer, so the function discards the part of the page from an
		// earlier call.
		next = page{ChangePage: client.ChangePage{NextCursor: raw.NextCursor, Current: raw.Current, LastSeq: raw.LastSeq}}
		lines := bufio.NewReaderSize(raw.Body, 64<<10)
		for {
			line, err := readLine(lines)
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
			if next.bytes += len(line); next.bytes > p.bytes && len(next.Changes) > 0 {
				return errTooLong
			}
			c, err := p.decoder.change(line)
			if err != nil {
				return fmt.Errorf("change %d of the page: %w", len(next.Changes)+1, err)
			}
			if !known(&c) {
				return fmt.Errorf("change %d of the page is of type %q, or without its record; this version knows %s, %s and %s",
					len(next.Changes)+1, c.Type, client.EntryChanged, client.EventAdded, client.EntryRemoved)
			}
			p.mask.change(&c)
			next.Changes = append(next.Changes, c)
		}
	})
	if err == nil && next.NextCursor == "" {
		err = errors.New("the server's answer has no X-Next-Cursor")
	}
	return next, err
}

// known reports whether this version knows the type of a change, and the change has the record of its type.
func known(c *client.Change) bool {
	switch c.Type {
	case client.EntryChanged:
		return c.Entry != nil
	case client.EventAdded:
		return c.Event != nil
	case client.EntryRemoved:
		return c.Removal != nil
	}
	return false
}

// readLine returns the next line of r, with its line break. The line may become invalid at the next call.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	long := append([]byte(nil), line...)
	for errors.Is(err, bufio.ErrBufferFull) {
		line, err = r.ReadSlice('\n')
		long = append(long, line...)
	}
	return long, err
}
