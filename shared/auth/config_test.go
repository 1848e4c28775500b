package auth_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/redis/rates"
)

func TestConfigValidate(t *testing.T) {
	good := map[string]string{"AUTH_DATABASE_URL": "postgres://r@h/auth"}
	for _, tt := range []struct {
		name string
		in   map[string]string
		want []string // faulty variables
	}{
		{"defaults", nil, nil},
		{"with Redis", map[string]string{"REDIS_URL": "redis://h"}, nil},
		{"everything", map[string]string{
			"REDIS_URL": "http://h", "AUTH_CACHE_TTL": "1ms", "RATE_LIMIT": "-1", "ANON_RATE_LIMIT": "2000000000",
		}, []string{"ANON_RATE_LIMIT", "AUTH_CACHE_TTL", "RATE_LIMIT", "REDIS_URL"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			environ := map[string]string{}
			for _, m := range []map[string]string{good, tt.in} {
				for k, v := range m {
					environ[k] = v
				}
			}
			var cfg auth.Config
			err := config.Load(&cfg, environ)
			got := map[string]bool{}
			if faults, ok := errors.AsType[*config.Faults](err); ok {
				for _, f := range faults.All {
					if fault, ok := errors.AsType[*config.Fault](f); ok {
						got[fault.Variable] = true
					}
				}
			}
			want := map[string]bool{}
			for _, v := range tt.want {
				want[v] = true
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%v: %s", err, diff)
			}
			if len(tt.want) == 0 {
				if diff := cmp.Diff(rates.Rate{PerSecond: 1000, Burst: 2000}, cfg.KeyRate()); diff != "" {
					t.Error(diff)
				}
				if diff := cmp.Diff(rates.Rate{PerSecond: 200, Burst: 400}, cfg.AnonymousRate()); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}
