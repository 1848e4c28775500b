package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
)

// body reads the one record at path and returns the body of the answer unchanged.
func (c *Client) body(ctx context.Context, path string) ([]byte, error) {
	body, _, err := c.JSON(ctx, List{path: path}, "", 0)
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

// readOne reads the one record, or the insight, that of names, and decodes the answer into a T.
func readOne[T any](ctx context.Context, c *Client, of List) (T, error) {
	var record, none T
	body, _, err := c.JSON(ctx, of, "", 0)
	if err != nil {
		return none, err
	}
	if err := json.Unmarshal(body, &record); err != nil {
		return none, fmt.Errorf("the answer of %s: %w", of.path, err)
	}
	return record, nil
}
