package auth_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/limits"
)

func TestConfigValidate(t *testing.T) {
	var cfg auth.Config
	if err := config.Load(&cfg, map[string]string{"AUTH_DATABASE_URL": "postgres://r@h/auth", "REDIS_URL": "redis://h"}); err != nil {
		t.Fatal(err)
	}
	want := [2]limits.Rate{{PerSecond: 1000, Burst: 2000}, {PerSecond: 200, Burst: 400}}
	if diff := cmp.Diff(want, [2]limits.Rate{cfg.KeyRate(), cfg.AnonymousRate()}); diff != "" {
		t.Error(diff)
	}
	faulty := map[string]string{
		"AUTH_DATABASE_URL": "postgres://h:port", "REDIS_URL": "http://h", "AUTH_CACHE_TTL": "1ms", "RATE_LIMIT": "-1", "ANON_RATE_LIMIT": "2000000000",
		"TOKEN_ISSUERS": `[{"url":"https://login.example.com","audiences":["a"],"caFile":"/no/such/file"}]`,
	}
	err := config.Load(&auth.Config{}, faulty)
	for variable := range faulty {
		if err == nil || !strings.Contains(err.Error(), "\n  "+variable+" ") {
			t.Errorf("%s is not reported in: %v", variable, err)
		}
	}
}
