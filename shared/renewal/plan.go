// Package renewal decides when a token is renewed, which refresh token is sent, and what is stored. It does no I/O. The
// operator and the command line use the package. The console has the same rules in TypeScript, and passes the same cases.
//
// A provider may replace the refresh token with each answer. Some providers end the session if the old one is sent again
// (RFC 9700, section 4.14.2). So a caller takes these steps, and does nothing else between them:
//
//  1. Plan returns a step to send. The caller stores [Step].Store. If it cannot, it sends nothing.
//  2. The caller sends [Step].Token. An interrupt does not end the request.
//  3. Plan gets the answer. The caller stores [Step].Store. If it cannot, it keeps the state and sends nothing before it can.
//
// A process that is killed between 2 and 3 loses the answer, and the next process can only send the old token. A provider
// with a grace period for replaced tokens answers again. Any other refuses, and the user has to sign in or to give another
// token.
package renewal

import (
	"cmp"
	"time"
)

// State holds the stored facts about one token and its renewals.
type State struct {
	// Request identifies the settings and secrets of the last request. After a change, a token is requested at once.
	Request string `json:"request,omitempty"`
	// First identifies the refresh token that the user gave. Refresh descends from that token.
	First string `json:"first,omitempty"`
	// Refresh is the newest refresh token, or "". A store keeps it outside of the JSON.
	Refresh string `json:"-"`
	// ExpiresAt is when the token expires. Zero: there is none.
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
	// NextAt is when the next request is due.
	NextAt time.Time `json:"nextAt,omitzero"`
	// Failures counts the failed requests since the last token, or since a change of Request. Fault says why the last
	// request failed.
	Failures int    `json:"failures,omitempty"`
	Fault    string `json:"fault,omitempty"`
	// Warning says what was odd about the answer with the present token.
	Warning string `json:"warning,omitempty"`
	// ClaimedAt is when a request began whose answer is not stored yet. A claim that has ended makes a request due.
	ClaimedAt time.Time `json:"claimedAt,omitzero"`
}

// Spec describes the request for a token as it is now.
type Spec struct {
	Request string // see [State]
	First   string // see [State]
	Given   string // the refresh token that the user gave, or ""
	// Awaited reports that a user waits for the token, and that only a refresh token gets another. So a request is due as
	// soon as no token is valid, and without a refresh token only then.
	Awaited bool
}

// Answer is the outcome of a request.
type Answer struct {
	Refresh string        // the refresh token of the answer, even if the answer is of no other use; "": the answer has none
	Life    time.Duration // of the token, from the start of the request
	Fault   string        // why there is no token; "": there is one
	Warning string        // see [State]
	Refused bool          // an early retry of the failed request would not help
}

// Step tells a caller what to do next.
type Step struct {
	Send  bool          // store Store, and then send Token
	Token string        // the refresh token to send; "": there is none
	Store State         // to be stored; meaningless if nothing was sent or is to be sent
	Wait  time.Duration // until the next request; zero: the request is due
}

const (
	// claimFor is how long nobody else sends a request after one began. A request and the write of its answer normally
	// take less. Grace periods of providers for replaced tokens are up to a minute.
	claimFor = 30 * time.Second
	// shortest is the shortest delay after a request before the next. The delay doubles with each failure.
	shortest = 10 * time.Second
	// longest is the longest delay after a failed request. A refused request is repeated after this delay, or sooner while
	// a token is valid: after a quarter of the rest of its life.
	longest = 10 * time.Minute
)

// Plan returns the next step. After a request that an earlier step demanded, s is the state that was stored before the
// request, and answer its outcome. Otherwise answer is nil.
func Plan(s State, now time.Time, spec Spec, answer *Answer) Step {
	if answer != nil {
		s = s.answered(*answer)
		return Step{Store: s, Wait: s.wait(now, spec)}
	}
	if wait := s.wait(now, spec); wait > 0 {
		return Step{Wait: wait}
	}
	if s.First != spec.First {
		s.Refresh = "" // whatever happens next, no token from before the given one is sent again
	}
	if s.Request != spec.Request {
		s.Failures = 0
	}
	s.Request, s.First, s.ClaimedAt = spec.Request, spec.First, now
	return Step{Send: true, Token: cmp.Or(s.Refresh, spec.Given), Store: s}
}

// wait returns the time until the next request may be sent. Zero: now.
func (s State) wait(now time.Time, spec Spec) time.Duration {
	if claimed := s.ClaimedAt.Add(claimFor).Sub(now); claimed > 0 && claimed <= 2*claimFor {
		return claimed
	}
	next := s.NextAt.Sub(now)
	switch left := s.ExpiresAt.Sub(now); {
	case s.Request != spec.Request, !s.ClaimedAt.IsZero(): // the answer to a claimed request was lost
		return 0
	case spec.Awaited && s.Refresh == "":
		next = left
	case spec.Awaited:
		next = min(next, left)
	}
	return max(next, 0)
}

// answered returns the state after an answer to the request that began at ClaimedAt.
func (s State) answered(a Answer) State {
	sent := s.ClaimedAt
	s.ClaimedAt = time.Time{}
	s.Refresh = cmp.Or(a.Refresh, s.Refresh) // also of an answer without a token: the provider may accept no other any more
	if a.Fault == "" {
		s.ExpiresAt, s.NextAt = sent.Add(a.Life), sent.Add(max(a.Life*2/3, shortest))
		s.Failures, s.Fault, s.Warning = 0, "", a.Warning
		return s
	}
	delay := longest
	if !a.Refused && s.Failures < 6 {
		delay = shortest << s.Failures
	}
	if left := s.ExpiresAt.Sub(sent); left > 0 {
		delay = min(delay, max(left/4, shortest)) // a token of a short life must not end before the next request
	}
	s.NextAt, s.Failures, s.Fault = sent.Add(delay), s.Failures+1, a.Fault
	return s
}
