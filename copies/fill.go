package copies

import (
	"context"
	"fmt"

	"github.com/lectern-dev/lectern/client"
)

// Filler is a [Destination] whose copy may have columns that a version of this program added after rows were written.
// [Run] reads the feed again for such rows, while the copy follows the feed.
type Filler interface {
	Destination
	// Unfilled returns the position after which rows may lack values, and whether there is such a position. The caller
	// has opened the copy.
	Unfilled() (Position, bool)
	// Fill adds the values that rows lack, and stores the position after f, in one commit.
	Fill(ctx context.Context, f *Filling) error
}

// Filling is a page of the feed that is read again for its values of added columns.
type Filling struct {
	Changes []client.Change
	// Position is the position after Changes. Last reports that no later row lacks values.
	Position Position
	Last     bool
}

// UnfilledError returns the error of a verification of a copy whose rows may lack values.
func UnfilledError(to Destination) error {
	return fmt.Errorf("%s has not yet all values of the columns that a new version of lectern added: run lectern sync without --verify until the copy is current", to)
}

// fill reads the feed from the position after which rows lack values up to the position from, and sends the pages to
// fills. Batches write all columns of the changes after from. If filler is nil, no row lacks values.
func (r *run) fill(ctx context.Context, filler Filler, from Position, fills chan<- *Filling) error {
	if filler == nil {
		return nil
	}
	at, unfilled := filler.Unfilled()
	if !unfilled {
		return nil
	}
	for {
		err := r.fillFrom(ctx, at, from, fills)
		if client.Code(err) != client.CodeHistoryLost {
			return err
		}
		at = Position{}
	}
}

// fillFrom sends the pages after at, up to the position from, to fills.
func (r *run) fillFrom(ctx context.Context, at, from Position, fills chan<- *Filling) error {
	for p, err := range r.feed(ctx, client.ChangeQuery{Types: r.Query.Types}, at, from) {
		if err != nil {
			return err
		}
		if n := len(p.Changes); n > 0 {
			at.Seq = p.Changes[n-1].Seq
		}
		at.Cursor = p.NextCursor
		f := &Filling{Changes: p.Changes, Position: at, Last: p.Current || at.Seq >= from.Seq}
		select {
		case fills <- f:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if f.Last {
			return nil
		}
	}
	return nil
}
