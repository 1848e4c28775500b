package authn_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/auth/authn"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func verify(a *authn.Authenticator, project, key string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	_, err := a.Verifier.Verify(ctx, project, key)
	return err
}

func refused(err error) bool {
	_, ok := errors.AsType[apierr.Refusal](err)
	return ok
}

func unavailable(err error) bool {
	e, ok := errors.AsType[*apierr.Error](err)
	return ok && e.Code() == apierr.Unavailable
}
