package pagelist

import "context"

// Turns keeps order among the lists of many chunks, so that they leave room for each other and for what is
// small.
type Turns interface {
	// Enter admits a list that goes on behind its first chunk. The error is what its request is answered with.
	Enter(ctx context.Context) (Turn, error)
}

// Turn is one list's place among the others. It is used by one goroutine at a time.
type Turn interface {
	// Take waits until the list may run a statement. It is to be a short one where others ask for something too.
	// The error is that of a ctx that ended first.
	Take(ctx context.Context) (short bool, err error)

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

// inTurn runs a statement of so many records when it is the list's turn, and says of how many it was.
func (l *List) inTurn(ctx context.Context, light bool, records int, run func(records int) error) (int, error) {
	if l.turn == nil {
		return records, run(records)
	}
	short, err := l.turn.Take(ctx)
	if err != nil {
		return 0, err
	}
	if short && records != All {
		records = max(1, records/shortBy)
	}
	// Who has left asks for nothing more: who comes next is kept from nobody by going on at once.
	defer func() { l.turn.Give(light || ctx.Err() != nil) }()
	return records, run(records)
}
