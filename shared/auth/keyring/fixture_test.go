package keyring_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/keyring"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func verify(k *keyring.Keyring, project, key string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	_, err := k.Verifier.Verify(ctx, project, key)
	return err
}

func refused(err error) bool {
	_, ok := errors.AsType[auth.Refusal](err)
	return ok
}

func unavailable(err error) bool {
	e, ok := errors.AsType[*apierr.Error](err)
	return ok && e.Code() == apierr.Unavailable
}

// until calls ok every few milliseconds until it returns true, and returns the elapsed time.
func until(t *testing.T, what string, ok func() bool) time.Duration {
	t.Helper()
	start := time.Now()
	for !ok() {
		if time.Since(start) > 20*time.Second {
			t.Fatalf("not within 20 s: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
	return time.Since(start)
}
