package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

const (
	// attempts is how often a request is made at most.
	attempts = 4

	// firstPause and longestPause bound the random while between two of them, unless the service asks for
	// a longer one.
	firstPause   = 50 * time.Millisecond
	longestPause = 500 * time.Millisecond

	// maxAnswer is the longest answer that is read, in bytes.
	maxAnswer = 64 << 10
)

// ask asks the service, again where that may help and time allows it.
func (c *Client) ask(ctx context.Context, projectID string, at *time.Time) (Region, error) {
	request := struct {
		ProjectID string `json:"projectId"`
		At        string `json:"at,omitempty"`
	}{ProjectID: projectID}
	if at != nil {
		request.At = at.UTC().Format("2006-01-02T15:04:05.999999Z")
	}
	body, err := json.Marshal(request)
	if err != nil {
		return Region{}, fmt.Errorf("region client: %w", err)
	}
	for attempt := 0; ; attempt++ {
		region, wait, err := c.once(ctx, body, attempt)
		switch {
		case err == nil:
			return region, nil
		case c.ctx.Err() != nil:
			return Region{}, ErrClosed
		case !errors.Is(err, ErrUnavailable), attempt == attempts-1:
			return Region{}, err
		}
		wait = max(wait, rand.N(min(firstPause<<attempt, longestPause)))
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= wait {
			return Region{}, err // there is no time for another
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return Region{}, err
		}
	}
}

// once makes one request. wait is how long the service asks to be left alone.
func (c *Client) once(ctx context.Context, body []byte, attempt int) (region Region, wait time.Duration, err error) {
	ctx, span := c.tracer.Start(ctx, "POST /api/projects/region", trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("http.request.method", http.MethodPost)))
	if attempt > 0 {
		span.SetAttributes(attribute.Int("http.request.resend_count", attempt))
	}
	defer func() {
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return Region{}, 0, fmt.Errorf("region client: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Api-Key", c.key)
	c.pass.Inject(ctx, propagation.HeaderCarrier(r.Header))
	resp, err := c.http.Do(r)
	if err != nil {
		return Region{}, 0, broken(ctx, err)
	}
	defer resp.Body.Close()
	span.SetAttributes(attribute.Int("http.response.status_code", resp.StatusCode))
	answered, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return Region{}, 0, broken(ctx, err)
	}
	if resp.StatusCode != http.StatusOK {
		seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
		if err == nil && seconds > 0 {
			wait = time.Duration(seconds) * time.Second
		}
		return Region{}, wait, refusal(resp, answered)
	}
	var found struct {
		Region          string `json:"region"`
		OffsetInMinutes *int   `json:"offsetInMinutes"`
	}
	if err := json.Unmarshal(answered, &found); err != nil || found.Region == "" || found.OffsetInMinutes == nil {
		return Region{}, 0, &Error{Status: resp.StatusCode, RequestID: resp.Header.Get("X-Request-Id"), Message: "the answer is no region"}
	}
	return Region{Name: found.Region, OffsetMinutes: *found.OffsetInMinutes}, 0, nil
}

// broken says that no answer came: the caller's own end where that is why, else a fault that may pass.
func broken(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}
