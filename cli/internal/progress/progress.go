// Package progress shows the progress of a long command on a terminal. Without a terminal, the package shows no
// progress.
package progress

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// Bar is a progress bar on a terminal. Without a terminal, and for a quiet command, a Bar only passes on the lines of
// [Bar.Write].
type Bar struct {
	out  io.Writer
	pool *mpb.Progress // nil for a bar that is not shown
	bar  *mpb.Bar
	text atomic.Pointer[string]
}

// Bytes starts a bar on w that shows the bytes so far, the total and the remaining time. If total is not positive, the
// total is unknown: the bar is a spinner with the text of [Bar.Set]. For a quiet command, nothing is shown.
func Bytes(w io.Writer, quiet bool, total int64) *Bar {
	return open(w, quiet, total, []decor.Decorator{
		decor.CountersKibiByte("% .1f of % .1f"), decor.Name("  "), decor.Percentage(),
		decor.Name("  "), decor.AverageETA(decor.ET_STYLE_GO),
	})
}

// Count starts a bar as [Bytes] does, that shows the percentage of total records and the remaining time.
func Count(w io.Writer, quiet bool, total int64) *Bar {
	return open(w, quiet, total, []decor.Decorator{decor.Percentage(), decor.Name("  "), decor.AverageETA(decor.ET_STYLE_GO)})
}

func open(w io.Writer, quiet bool, total int64, right []decor.Decorator) *Bar {
	b := &Bar{out: w}
	if quiet || !Shown(w) {
		return b
	}
	w = terminalOf(w)
	b.pool = mpb.New(mpb.WithOutput(w), mpb.WithWidth(48), mpb.WithRefreshRate(100*time.Millisecond))
	left := mpb.PrependDecorators(decor.Any(func(decor.Statistics) string {
		if text := b.text.Load(); text != nil {
			return *text + " "
		}
		return ""
	}))
	var style mpb.BarFillerBuilder = mpb.BarStyle()
	if total <= 0 {
		total, style, right = 0, mpb.SpinnerStyle().PositionLeft(), nil
	}
	b.bar = b.pool.New(total, style, left, mpb.AppendDecorators(right...), mpb.BarRemoveOnComplete())
	return b
}

// Shown reports whether a bar on w is visible, because w is a terminal or another character device. A terminal that cannot
// move its cursor, as TERM=dumb says, has no bar.
func Shown(w io.Writer) bool {
	f, ok := terminalOf(w).(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// terminalOf returns the writer that w wraps if w has a method Unwrap, as a screen.Writer has, and w itself otherwise.
func terminalOf(w io.Writer) io.Writer {
	if screen, ok := w.(interface{ Unwrap() io.Writer }); ok {
		return screen.Unwrap()
	}
	return w
}

// Set moves the bar to n, and shows the formatted text before the bar.
func (b *Bar) Set(n int64, format string, args ...any) {
	if b.pool == nil {
		return
	}
	b.text.Store(new(fmt.Sprintf(format, args...)))
	b.bar.SetCurrent(n)
}

// Done removes the bar from the terminal. Done may be called more than once.
func (b *Bar) Done() {
	if b.pool == nil {
		return
	}
	b.bar.Abort(true)
	b.pool.Wait()
}

// Write prints lines above the bar, or passes the lines on to the bar's writer if the bar is not shown.
func (b *Bar) Write(p []byte) (int, error) {
	if b.pool == nil { // mpb would lose them
		return b.out.Write(p)
	}
	return b.pool.Write(p)
}
