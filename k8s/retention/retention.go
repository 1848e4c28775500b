// Package retention is the retention job. For each declared project with a retention, the job makes the entries service
// remove the older entries. At the end the embeddables service removes definitions that nothing refers to. The job runs once
// and stores nothing.
package retention

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/shared/telemetry"
)

// The job lists Projects, and needs no other right in the cluster.
// +kubebuilder:rbac:groups=lectern.dev,resources=projects,verbs=list

const (
	// requestTimeout bounds one request to a service, which removes up to 10,000 entries or 2,000 definitions, or searches
	// a part of the events.
	requestTimeout = 2 * time.Minute

	// attempts is how often the job sends one request at most. So attempts also bounds how long a failing project
	// delays the other projects.
	attempts = 5
)

// Run removes the old entries of all declared projects in the watched namespaces, for at most RETENTION_TIMEOUT. If a
// project fails, Run continues with the next project and returns an error at the end. It returns at once if the entries
// service refuses the key.
func Run(ctx context.Context, cfg Config) (err error) {
	if err := errors.Join(cfg.Validate(), cfg.Cluster.Validate()); err != nil {
		return err
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	tel, err := telemetry.Start(ctx, telemetry.Options{Service: "operator retention", Config: cfg.Telemetry, LogOutput: cfg.LogOutput})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tel.Shutdown(context.WithoutCancel(ctx))) }()
	cfg.Cluster.SetLogger(tel.Logger)
	ctx, cancel := context.WithTimeoutCause(ctx, cfg.Timeout, fmt.Errorf("RETENTION_TIMEOUT (%v) is over", cfg.Timeout))
	defer cancel()
	projects, err := list(ctx, cfg)
	if err != nil {
		return err
	}
	retry := client.Retry{Attempts: attempts, Notify: func(err error, wait time.Duration) {
		tel.Logger.WarnContext(ctx, "a removal failed; the job asks the service again", slog.Any("error", err), slog.Duration("wait", wait))
	}}
	options := []client.Option{
		client.WithAPIKey(cfg.AdminKey.Reveal()), client.WithUserAgent("lectern-retention"),
		client.WithRetry(retry), client.WithHTTPClient(&http.Client{Timeout: requestTimeout}),
	}
	j := &job{log: tel.Logger, now: cfg.Now(), days: cfg.Days}
	if j.entries, err = client.NewAdministrator(cfg.EntriesURL, options...); err != nil {
		return err
	}
	if cfg.EmbeddablesURL != "" {
		if j.embeddables, err = client.NewAdministrator(cfg.EmbeddablesURL, options...); err != nil {
			return err
		}
	}
	return j.run(ctx, projects)
}

// list returns all Projects of the watched namespaces, which it reads from the API server.
func list(ctx context.Context, cfg Config) ([]v1alpha1.Project, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	kube, err := cfg.Cluster.Client("lectern-retention")
	if err != nil {
		return nil, err
	}
	reader, err := ctrlclient.New(kube, ctrlclient.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("reach the API server: %w", err)
	}
	var all []v1alpha1.Project
	for _, namespace := range cfg.Cluster.Namespaces() {
		var found v1alpha1.ProjectList
		if err := reader.List(ctx, &found, ctrlclient.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("list Projects: %w", err)
		}
		all = append(all, found.Items...)
	}
	return all, nil
}
