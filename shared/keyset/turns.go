package keyset

import "context"

// Turns keeps order among the lists of many chunks, so that they leave room for each other and for what is
// small.
type Turns interface {
	// Enter admits a list that goes on behind its first chunk. The error is what its request is answered with.
	Enter(ctx context.Context) (Turn, error)
}

// Turn is one list's place among the others. It is used by one goroutine at a time.
type Turn interface {
	// Take waits until the list may run a statement. The error is that of a ctx that ended first.
	Take(ctx context.Context) error

	// Give says that the statement is over. A light one read an index alone, or was left in its middle.
	Give(light bool)

	// Leave says that there will be no more.
	Leave()
}

type turnsKey struct{}

// WithTurns returns ctx with what keeps turns among the lists that are read in it.
func WithTurns(ctx context.Context, turns Turns) context.Context {
	return context.WithValue(ctx, turnsKey{}, turns)
}

// enter asks for a place, where somebody keeps turns. Only lists of many chunks come here.
func (l *List) enter() error {
	turns, ok := l.ctx.Value(turnsKey{}).(Turns)
	if !ok {
		return nil
	}
	turn, err := turns.Enter(l.ctx)
	if err != nil {
		return err
	}
	l.turn = turn
	return nil
}

// inTurn runs a statement when it is the list's turn.
func (l *List) inTurn(ctx context.Context, light bool, run func() error) error {
	if l.turn == nil {
		return run()
	}
	if err := l.turn.Take(ctx); err != nil {
		return err
	}
	// Who has left asks for nothing more: who comes next is kept from nobody by going on at once.
	defer func() { l.turn.Give(light || ctx.Err() != nil) }()
	return run()
}
