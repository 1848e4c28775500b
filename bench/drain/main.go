// Command drain is the load of a large tenant. It exports a project several times at once, over and over, and discards
// the answers. It reads its configuration from the environment:
//
//	URL    the list, with its limit
//	KEY    the API key
//	LISTS  how many are read at once
//
// It prints "flowing" when every list has begun. When it is stopped, it prints a JSON object: the rows received, the
// seconds since then, and the requests that were refused with 429.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "drain:", err)
		os.Exit(1)
	}
}

// drained counts the received rows and the refused requests of all lists.
type drained struct {
	rows, refused atomic.Int64
	waiting       atomic.Int64 // lists that have not begun
	begun         atomic.Int64 // when all had, in Unix nanoseconds; 0 before
}

func run(ctx context.Context) error {
	lists, err := strconv.Atoi(os.Getenv("LISTS"))
	if err != nil {
		return fmt.Errorf("LISTS: %w", err)
	}
	first, err := url.Parse(os.Getenv("URL"))
	if err != nil {
		return fmt.Errorf("URL: %w", err)
	}
	var (
		d      drained
		all    sync.WaitGroup
		mu     sync.Mutex
		failed error
	)
	d.waiting.Store(int64(lists))
	for range lists {
		all.Go(func() {
			if err := d.walk(ctx, first); ctx.Err() == nil {
				mu.Lock()
				defer mu.Unlock()
				failed = errors.Join(failed, err)
			}
		})
	}
	all.Wait()
	seconds := 0.0
	if begun := d.begun.Load(); begun > 0 {
		seconds = time.Since(time.Unix(0, begun)).Seconds()
	}
	return errors.Join(failed, json.NewEncoder(os.Stdout).Encode(map[string]any{
		"rows": d.rows.Load(), "refused": d.refused.Load(), "seconds": seconds,
	}))
}

// walk follows the list's cursors to the end, over and over until ctx ends.
func (d *drained) walk(ctx context.Context, first *url.URL) error {
	cursor := ""
	fresh := true
	for ctx.Err() == nil {
		page := *first
		if cursor != "" {
			query := page.Query()
			query.Set("cursor", cursor)
			page.RawQuery = query.Encode()
		}
		next, err := d.page(ctx, page.String(), &fresh)
		if err != nil {
			return err
		}
		cursor = next
	}
	return nil
}

// page reads one page. If *fresh is true, it notes that its list has begun, and sets it to false.
func (d *drained) page(ctx context.Context, address string, fresh *bool) (cursor string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("X-Api-Key", os.Getenv("KEY"))
	req.Header.Set("Accept-Encoding", "identity")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusTooManyRequests:
		d.refused.Add(1)
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
		return "", nil
	default:
		return "", fmt.Errorf("GET: %s", resp.Status)
	}
	buffer := make([]byte, 64<<10)
	for {
		n, err := resp.Body.Read(buffer)
		if n > 0 && *fresh {
			*fresh = false
			if d.waiting.Add(-1) == 0 {
				d.begun.Store(time.Now().UnixNano())
				fmt.Println("flowing")
			}
		}
		if d.begun.Load() > 0 {
			d.rows.Add(int64(bytes.Count(buffer[:n], []byte("\n"))))
		}
		if err == io.EOF {
			return resp.Header.Get("X-Next-Cursor"), nil
		}
		if err != nil {
			return "", err
		}
	}
}
