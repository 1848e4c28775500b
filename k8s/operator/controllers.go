package operator

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/lectern-dev/lectern/k8s/cluster"
	"github.com/lectern-dev/lectern/k8s/internal/apikey"
	"github.com/lectern-dev/lectern/k8s/internal/controller"
	"github.com/lectern-dev/lectern/k8s/internal/credential"
	"github.com/lectern-dev/lectern/k8s/internal/metawatch"
	"github.com/lectern-dev/lectern/k8s/internal/ownership"
	"github.com/lectern-dev/lectern/k8s/internal/project"
	"github.com/lectern-dev/lectern/k8s/internal/proxyendpoint"
	"github.com/lectern-dev/lectern/k8s/internal/tokenendpoint"
	"github.com/lectern-dev/lectern/services/region/client"
	"github.com/lectern-dev/lectern/shared/auth/authn"
	"github.com/lectern-dev/lectern/shared/shutdown"
	"github.com/lectern-dev/lectern/shared/telemetry"
)

// workers is how many objects of a kind a controller reconciles at a time. The controller of fetched Credentials has a
// number of its own.
const workers = 4

// setUp adds the controllers to mgr, and adds to parts the connections that Run closes after the controllers. Without
// REGION_INTERNAL_URL, no region service stores Projects. Without AUTH_ADMIN_DATABASE_URL, there is no controller of
// APIKeys.
func setUp(ctx context.Context, mgr ctrl.Manager, cfg Config, tel *telemetry.Telemetry, parts *shutdown.Stack) error {
	common := controller.Common{
		Log: tel.Logger, Tracer: tel.TracerProvider, Meter: tel.MeterProvider, Now: cfg.Now, Workers: workers,
	}
	secrets, err := metawatch.New(mgr, "Secret", cfg.Cluster.Namespaces(), tel.Logger)
	if err != nil {
		return err
	}
	if err := errors.Join(secrets.Export(tel.MeterProvider), mgr.Add(secrets)); err != nil {
		return err
	}
	allowUndeclared := cfg.Rules.AllowUndeclared()
	if err := ownership.Index(ctx, mgr); err != nil {
		return err
	}
	credentials := credential.Options{Common: common, Secrets: secrets, Values: cfg.Rules.ValuesName(), AllowUndeclared: allowUndeclared}
	if cfg.FetchCredentials {
		credentials.Tokens = &tokenendpoint.Client{Guard: cfg.Egress.Guard(), Proxy: cfg.Auth.EgressProxy}
	}
	if err := credential.Setup(mgr, credentials); err != nil {
		return err
	}
	if err := proxyendpoint.Setup(mgr, proxyendpoint.Options{Common: common, AllowUndeclared: allowUndeclared}); err != nil {
		return err
	}
	projects := project.Options{Common: common}
	if cfg.RegionURL == "" {
		tel.Logger.WarnContext(ctx, "REGION_INTERNAL_URL is not set: Projects are not stored in a region service")
	} else {
		region, err := client.NewProjects(cfg.RegionURL, cfg.IngestKeys[0].Reveal(), client.ProjectsOptions{Tracer: tel.TracerProvider})
		if err != nil {
			return err
		}
		parts.AddFunc(region.Close)
		projects.Region = region
	}
	if err := project.Setup(mgr, projects); err != nil {
		return err
	}
	if cfg.Auth.AdminURL.IsZero() {
		tel.Logger.WarnContext(ctx, "AUTH_ADMIN_DATABASE_URL is not set: APIKeys are not reconciled")
		return nil
	}
	if !cfg.Auth.Redis.Enabled() {
		tel.Logger.WarnContext(ctx, "REDIS_URL is not set: services that use Redis notice a revoked key within AUTH_CACHE_TTL")
	}
	keys, err := authn.OpenAdmin(ctx, cfg.Auth, authn.Options{
		Log: tel.Logger, Tracer: tel.TracerProvider, Meter: tel.MeterProvider, Pool: cfg.Pool,
	})
	if err != nil {
		return err
	}
	parts.Add(func(context.Context) error { return keys.Close() })
	realm, err := apikey.ClusterRealm(ctx, mgr.GetAPIReader())
	if err != nil {
		return err
	}
	// Another release of the cluster may share the database, and watch other namespaces.
	realm += "/" + cluster.OwnNamespace() + "/" + cfg.Lease.Name
	// An APIKey may refer to a ServiceAccount of any namespace.
	accounts, err := metawatch.New(mgr, "ServiceAccount", []string{metav1.NamespaceAll}, tel.Logger)
	if err != nil {
		return err
	}
	if cfg.ClusterIssuer != "" {
		if err := mgr.Add(accounts); err != nil {
			return err
		}
	}
	return apikey.Setup(mgr, apikey.Options{
		Common: common, Secrets: secrets, Accounts: accounts, Keys: keys, Realm: realm, Namespaces: cfg.Cluster.WatchNamespaces, AllowUndeclared: allowUndeclared, PublicURL: cfg.PublicURL,
		ClusterIssuer: cfg.ClusterIssuer,
	})
}
