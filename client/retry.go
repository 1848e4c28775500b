package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"time"
)

// Retry is how often the client attempts a request, and how long it waits between the attempts. A field that is zero
// has its default.
type Retry struct {
	// Attempts is the greatest number of attempts, including the first. 1 never retries, and [Forever] retries without
	// a bound. Default: 8.
	Attempts int
	// Base is the wait before the second attempt if the server asks for none. The wait doubles before each further
	// attempt, up to Longest. The real wait is random, between half of the wait and the whole. Default: 200 ms.
	Base time.Duration
	// Longest is the longest wait before an attempt if the server asks for none. If the server asks for a longer wait,
	// the request fails at once with the server's error. To a shorter wait that the server asks for, the client adds a
	// random time. Default: 2 minutes.
	Longest time.Duration
	// Notify, if set, is called before each wait for another attempt, with the error and the length of the wait.
	Notify func(err error, wait time.Duration)
}

// Forever is a value of [Retry].Attempts: the client retries without a bound on the number of attempts.
const Forever = math.MaxInt

func (r Retry) withDefaults() Retry {
	r.Attempts = cmp.Or(r.Attempts, 8)
	r.Base = cmp.Or(r.Base, 200*time.Millisecond)
	r.Longest = cmp.Or(r.Longest, 2*time.Minute)
	return r
}

// Timeouts are how long the client waits while the network or the server is silent. A field that is zero has its
// default. No field bounds the time of a whole request: the caller's ctx does.
type Timeouts struct {
	// Connect is the longest time for connecting, and then for the TLS handshake. Default: 10 s.
	Connect time.Duration
	// Answer is the longest time from the end of the request to the answer's headers. Answer must be longer than a
	// wait for changes, which is at most 60 s. The default is 2 minutes, and 10 minutes for an [Ingester] and an
	// [Administrator].
	Answer time.Duration
	// Silence is the longest time without a byte within a body. Default: 2 minutes.
	Silence time.Duration
}

// readBuffer is the size of a connection's buffer in bytes. The default of net/http would take a system call for each 4 KiB of
// a list or a change feed.
const readBuffer = 32 << 10

// transport returns the client's default HTTP transport, with the time-outs Connect and Answer. The type whole applies
// Silence.
func (t Timeouts) transport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: t.Connect}).DialContext,
		TLSHandshakeTimeout:   t.Connect,
		ResponseHeaderTimeout: t.Answer,
		ForceAttemptHTTP2:     true,
		ReadBufferSize:        readBuffer,
		MaxIdleConnsPerHost:   16,
		IdleConnTimeout:       90 * time.Second,
	}
}

// transport sends requests with the credential and the headers of a client, and retries requests that may succeed later.
// Client, Ingester and Administrator embed a transport.
type transport struct {
	base       string
	credential credential
	userAgent  string
	http       *http.Client
	wrap       func(http.RoundTripper) http.RoundTripper
	retry      Retry
	timeouts   Timeouts

	// Tests replace sleep and jitter, so that waits take no time and are not random.
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

// randomJitter returns a random duration below d. randomJitter keeps clients that failed at the same time from
// retrying at the same time.
func randomJitter(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return rand.N(d)
}

type requestIDKey struct{}

// StoreRequestID returns a context with which a call stores the X-Request-Id of its latest answer in id. The operator
// finds the request in the logs by that id. Only one call at a time may use the context.
func StoreRequestID(ctx context.Context, id *string) context.Context {
	return context.WithValue(ctx, requestIDKey{}, id)
}

// brokenBody wraps an error of reading an answer's body. The client retries after a brokenBody.
type brokenBody struct{ cause error }

func (e *brokenBody) Error() string {
	return fmt.Sprintf("%v: %v", ErrIncomplete, e.cause)
}

func (e *brokenBody) Unwrap() []error { return []error{ErrIncomplete, e.cause} }

// whole is an answer's body whose read errors are of the type brokenBody. Read aborts the request if no byte arrives
// for the time silence. The time between two calls of Read does not count.
type whole struct {
	io.ReadCloser
	silence time.Duration
	abort   context.CancelFunc // ends the request
}

func (b whole) Read(p []byte) (int, error) {
	timer := time.AfterFunc(b.silence, b.abort)
	n, err := b.ReadCloser.Read(p)
	silent := !timer.Stop()
	if err != nil && err != io.EOF {
		if silent {
			err = fmt.Errorf("nothing arrived for %v", b.silence)
		}
		err = &brokenBody{err}
	}
	return n, err
}

// unanswered wraps an error of the connection: no answer arrived. The client retries after an unanswered that is
// temporary.
type unanswered struct{ cause error }

func (e *unanswered) Error() string { return e.cause.Error() }
func (e *unanswered) Unwrap() error { return e.cause }

// temporary reports whether another attempt may succeed. temporary returns false for a host name that does not exist,
// and for an invalid certificate.
func (e *unanswered) temporary() bool {
	if name, ok := errors.AsType[*net.DNSError](e.cause); ok && name.IsNotFound {
		return false
	}
	_, certificate := errors.AsType[*tls.CertificateVerificationError](e.cause)
	return !certificate
}

// request is a request of the client: each attempt sends it anew.
type request struct {
	method, path string // path has the query
	accept       string // the media type of the answer; "" is any
	contentType  string // of body; "" is none
	body         []byte
}

// do sends r until receive succeeds, an error is final, or the bounds are reached. receive is called for each successful
// answer, and must discard the data of earlier calls. Errors of receive are final, except for those of reading the body.
// After a 401, do repeats the request once if the credential has changed.
func (t *transport) do(ctx context.Context, r request, receive func(*http.Response) error) error {
	for attempt := 1; ; attempt++ {
		value, err := t.credential.read(ctx)
		if err == nil {
			err = t.once(ctx, value, r, receive)
		}
		if e, ok := errors.AsType[*Error](err); ok && e.Status == http.StatusUnauthorized {
			// The key or the token may have been replaced after this attempt read it.
			if now, readErr := t.credential.read(ctx); readErr == nil && now != value {
				err = t.once(ctx, now, r, receive)
			}
		}
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
		if ended := t.sleep(ctx, wait); ended != nil {
			return fmt.Errorf("%w; the last attempt: %w", ended, err)
		}
	}
}

func (t *transport) once(ctx context.Context, credential string, r request, receive func(*http.Response) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, r.method, t.base+r.path, bytes.NewReader(r.body))
	if err != nil {
		return err
	}
	for name, value := range map[string]string{"Accept": r.accept, "Content-Type": r.contentType} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	req.Header.Set("User-Agent", t.userAgent)
	t.credential.set(req.Header, credential)
	resp, err := t.http.Do(req)
	if err != nil {
		return &unanswered{err}
	}
	resp.Body = whole{resp.Body, t.timeouts.Silence, cancel}
	if id, ok := ctx.Value(requestIDKey{}).(*string); ok {
		*id = resp.Header.Get("X-Request-Id")
	}
	if resp.StatusCode/100 != 2 {
		return readError(resp, time.Now()).typed()
	}
	defer resp.Body.Close()
	return receive(resp)
}

// wait returns how long the client waits after the error err of an attempt, and reports whether the client attempts
// again.
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
		_, unread := errors.AsType[credentialError](err)
		mute, ok := errors.AsType[*unanswered](err)
		if !broken && !unread && !(ok && mute.temporary()) {
			return 0, false
		}
	}
	return backoff/2 + t.jitter(backoff/2), true
}
