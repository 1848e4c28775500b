package httpserver

import "github.com/lectern-dev/lectern/shared/limits"

// enter takes a slot of MAX_IN_FLIGHT for the request. The slot counts for the client's network, because the project is
// not known yet. If the client is not known, as behind the edge, the slot counts for no network. The error is the
// answer if no slot is free.
func (x *exchange) enter() error {
	if x.chain.slots == nil {
		return nil
	}
	x.holder = limits.Client(x.info.ClientAddress, x.info.ClientKnown)
	return x.takeSlot()
}

func (x *exchange) takeSlot() error {
	if err := x.chain.slots.Take(x.holder, 1); err != nil {
		return limits.Answer(err, "Too many requests of this client or project are being answered. Try again when some have ended.", "MAX_IN_FLIGHT")
	}
	x.slots = 1
	return nil
}

// admit is the request's Info.Admit. admit moves the request's slot from the client's network to the project. The error
// is the answer if the project has its share.
func (x *exchange) admit(projectID string) error {
	if x.chain.slots == nil {
		return nil
	}
	to := limits.Project(projectID)
	if err := x.chain.slots.Move(x.holder, to, x.slots); err != nil {
		return limits.Answer(err, "Too many requests of this project are being answered. Try again when some have ended.", "MAX_IN_FLIGHT")
	}
	x.holder = to
	return nil
}

// leave is the request's Info.Leave. leave gives the request's slot back while the request waits. The caller calls
// enter to take a slot again; the error of enter is the answer if no slot is free.
func (x *exchange) leave() (enter func() error) {
	if x.slots == 0 {
		return func() error { return nil }
	}
	x.chain.slots.Give(x.holder, 1)
	x.slots = 0
	return x.takeSlot
}

// hold is the request's Info.Hold. hold counts bytes of the answer in ANSWER_MEMORY until the request ends. The error
// is the answer if the process, or the project or client of the request, holds too many bytes.
func (x *exchange) hold(bytes int64) error {
	if x.chain.answers == nil {
		return nil
	}
	if err := x.chain.answers.Take(x.holder, bytes); err != nil {
		return limits.Answer(err, "Too many answers of this project are waiting to be taken. Take them, or try again when some have ended.", "ANSWER_MEMORY")
	}
	x.held += bytes
	return nil
}

// depart gives back the slot and the bytes that the request has taken. depart runs at the end of the request.
func (x *exchange) depart() {
	if x.slots > 0 {
		x.chain.slots.Give(x.holder, x.slots)
	}
	if x.held > 0 {
		x.chain.answers.Give(x.holder, x.held)
	}
}
