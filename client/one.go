package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// body reads the one record at path and returns the body of the answer unchanged.
func (c *Client) body(ctx context.Context, path string) ([]byte, error) {
	var body []byte
	err := c.get(ctx, path, nil, "application/json", func(r *http.Response) (err error) {
		if err := checkDelimited(r); err != nil {
			return err
		}
		body, err = readBody(r.Body)
		return err
	})
	return body, err
}

// longestBody is the longest answer that the client reads into memory, in bytes. The bound is needed because a
// compressed answer may become a thousand times as long.
const longestBody = 256 << 20

// readBody reads a whole answer into memory. An answer longer than longestBody is an error.
func readBody(r io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, longestBody+1))
	if err == nil && len(body) > longestBody {
		return nil, fmt.Errorf("the answer is longer than %d MiB: ask for fewer records, or read them as a stream (Client.Raw, lectern export)", longestBody>>20)
	}
	return body, err
}

// readOne reads the one record at path and decodes it into a T.
func readOne[T any](ctx context.Context, c *Client, path string) (T, error) {
	var record T
	body, err := c.body(ctx, path)
	if err != nil {
		return record, err
	}
	if err := json.Unmarshal(body, &record); err != nil {
		var none T
		return none, fmt.Errorf("the record at %s: %w", path, err)
	}
	return record, nil
}
