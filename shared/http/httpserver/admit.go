package httpserver

import (
	"errors"
	"fmt"
	"time"

	"github.com/lectern-dev/lectern/shared/admission"
	"github.com/lectern-dev/lectern/shared/http/apierr"
)

// retryRefused is the Retry-After of a request over a share.
const retryRefused = time.Second

// refusal returns the answer to a request that a pool has refused. what has the message for a holder over its share, and
// why the cause for the log.
func refusal(err error, what, why string) error {
	if errors.Is(err, admission.ErrShare) {
		return apierr.New(apierr.RateLimited, what).After(retryRefused)
	}
	return apierr.NotAvailable(fmt.Errorf("%s: %w", why, err))
}

// enter takes a slot. The request's project is not known yet, so the slot is that of the client's network, if that is known.
// A service behind the edge leaves the networks to the edge.
func (x *exchange) enter() error {
	if x.chain.slots == nil {
		return nil
	}
	x.holder = admission.Client(&x.info)
	return x.takeSlot()
}

func (x *exchange) takeSlot() error {
	if err := x.chain.slots.Take(x.holder, 1); err != nil {
		return refusal(err, "Too many requests of this client or project are being answered. Try again when some have ended.", "MAX_IN_FLIGHT")
	}
	x.slots = 1
	return nil
}

// admit is the request's Info.Admit.
func (x *exchange) admit(projectID string) error {
	if x.chain.slots == nil {
		return nil
	}
	to := admission.Project(projectID)
	if err := x.chain.slots.Move(x.holder, to, x.slots); err != nil {
		return refusal(err, "Too many requests of this project are being answered. Try again when some have ended.", "MAX_IN_FLIGHT")
	}
	x.holder = to
	return nil
}

// leave is the request's Info.Leave.
func (x *exchange) leave() (enter func() error) {
	if x.slots == 0 {
		return func() error { return nil }
	}
	x.chain.slots.Give(x.holder, 1)
	x.slots = 0
	return x.takeSlot
}

// hold is the request's Info.Hold.
func (x *exchange) hold(bytes int64) error {
	if x.chain.answers == nil {
		return nil
	}
	if err := x.chain.answers.Take(x.holder, bytes); err != nil {
		return refusal(err, "Too many answers of this project are waiting to be taken. Take them, or try again when some have ended.", "ANSWER_MEMORY")
	}
	x.held += bytes
	return nil
}

// depart gives back what the request has.
func (x *exchange) depart() {
	if x.slots > 0 {
		x.chain.slots.Give(x.holder, x.slots)
	}
	if x.held > 0 {
		x.chain.answers.Give(x.holder, x.held)
	}
}
