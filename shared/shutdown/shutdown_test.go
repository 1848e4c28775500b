package shutdown_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lectern-dev/lectern/shared/shutdown"
)

func TestStopsInReverseOrder(t *testing.T) {
	var stack shutdown.Stack
	var stopped []string
	fault := errors.New("fault")
	stack.AddFunc(func() { stopped = append(stopped, "first") })
	stack.Go(func(ctx context.Context) {
		<-ctx.Done()
		stopped = append(stopped, "background")
	})
	stack.Add(func(context.Context) error {
		stopped = append(stopped, "last")
		return fault
	})
	if err := stack.Stop(time.Minute); !errors.Is(err, fault) {
		t.Errorf("Stop = %v", err)
	}
	if want := []string{"last", "background", "first"}; !slices.Equal(stopped, want) {
		t.Errorf("stopped %v, want %v", stopped, want)
	}
	if err := stack.Stop(time.Minute); err != nil {
		t.Errorf("a second Stop = %v", err)
	}
}

func TestStopIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stack shutdown.Stack
		release := make(chan struct{})
		stopped := false
		stack.AddFunc(func() { stopped = true })
		stack.AddFunc(func() { <-release })
		stack.Go(func(context.Context) { <-release })
		start := time.Now()
		if err := stack.Stop(time.Second); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("Stop = %v after %v", err, time.Since(start))
		}
		close(release)
		synctest.Wait()
		if !stopped {
			t.Error("a part after one that hangs was not stopped")
		}
	})
}
