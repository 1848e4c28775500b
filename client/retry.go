package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"time"
)

// Retry bounds how often and how long a request is tried again.
type Retry struct {
	// Attempts is how often a request is sent at most, the first time included; 1 never repeats.
	Attempts int
	// Base is the wait before the second attempt where the server names none. It doubles with each
	// further attempt up to Longest; the real wait is a random part of it, at least half.
	Base time.Duration
	// Longest bounds one wait. A server that asks for a longer one is taken at its word: the request
	// fails at once with the server's error.
	Longest time.Duration
	// Notify, when set, is told before each wait what failed and how long the wait is.
	Notify func(err error, wait time.Duration)
}

// DefaultRetry tries 8 times over about half a minute, or as long as the server asks for, up to two
// minutes a wait.
func DefaultRetry() Retry {
	return Retry{Attempts: 8, Base: 200 * time.Millisecond, Longest: 2 * time.Minute}
}

// transport sends requests and repeats those that may succeed later.
type transport struct {
	base      string
	apiKey    string
	userAgent string
	http      *http.Client
	retry     Retry

	// Replaced in tests.
	sleep  func(context.Context, time.Duration) error
	jitter func(time.Duration) time.Duration
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// randomJitter returns a random duration below d, so that clients that were sent away together do not
// come back together.
func randomJitter(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return rand.N(d)
}

// brokenBody marks an error of reading the answer's body, which another attempt may not meet.
type brokenBody struct{ cause error }

func (e *brokenBody) Error() string {
	return fmt.Sprintf("%v: %v", ErrIncomplete, e.cause)
}

func (e *brokenBody) Unwrap() []error { return []error{ErrIncomplete, e.cause} }

// whole passes a body on and marks the errors of reading it.
type whole struct{ io.ReadCloser }

func (b whole) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = &brokenBody{err}
	}
	return n, err
}

// unanswered marks an error of the connection: there was no answer at all.
type unanswered struct{ cause error }

func (e *unanswered) Error() string { return e.cause.Error() }
func (e *unanswered) Unwrap() error { return e.cause }

// passing tells whether another attempt may do better: not where the name or the certificate is wrong.
func (e *unanswered) passing() bool {
	if name, ok := errors.AsType[*net.DNSError](e.cause); ok && name.IsNotFound {
		return false
	}
	_, certificate := errors.AsType[*tls.CertificateVerificationError](e.cause)
	return !certificate
}

// do sends what build makes until receive takes a success, an error is final, or the bounds are
// reached. receive is called once for each successful answer and must forget what an earlier call
// got; its own errors are final, those of reading the body are tried again. The body is closed here.
func (t *transport) do(ctx context.Context, build func(context.Context) (*http.Request, error), receive func(*http.Response) error) error {
	for attempt := 1; ; attempt++ {
		err := t.once(ctx, build, receive)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		wait, again := t.wait(err, attempt)
		if !again {
			if attempt > 1 {
				err = fmt.Errorf("after %d attempts: %w", attempt, err)
			}
			return err
		}
		if t.retry.Notify != nil {
			t.retry.Notify(err, wait)
		}
		if err := t.sleep(ctx, wait); err != nil {
			return err
		}
	}
}

func (t *transport) once(ctx context.Context, build func(context.Context) (*http.Request, error), receive func(*http.Response) error) error {
	req, err := build(ctx)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", t.userAgent)
	if t.apiKey != "" {
		req.Header.Set("X-Api-Key", t.apiKey)
	}
	resp, err := t.http.Do(req)
	if err != nil {
		return &unanswered{err}
	}
	if resp.StatusCode/100 != 2 {
		return readError(resp, time.Now())
	}
	resp.Body = whole{resp.Body}
	defer resp.Body.Close()
	return receive(resp)
}

// wait tells how long to wait before the next attempt, and whether there is one.
func (t *transport) wait(err error, attempt int) (time.Duration, bool) {
	if attempt >= t.retry.Attempts {
		return 0, false
	}
	backoff := t.retry.Base
	for range attempt - 1 {
		if backoff *= 2; backoff >= t.retry.Longest {
			backoff = t.retry.Longest
			break
		}
	}
	if e, ok := errors.AsType[*Error](err); ok {
		switch e.Status {
		case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusBadGateway, http.StatusGatewayTimeout:
		default:
			return 0, false
		}
		if e.RetryAfter > t.retry.Longest {
			return 0, false
		}
		if e.RetryAfter > 0 {
			return e.RetryAfter + t.jitter(min(backoff, e.RetryAfter)), true
		}
	} else {
		_, broken := errors.AsType[*brokenBody](err)
		mute, ok := errors.AsType[*unanswered](err)
		if !broken && !(ok && mute.passing()) {
			return 0, false
		}
	}
	return backoff/2 + t.jitter(backoff/2), true
}
