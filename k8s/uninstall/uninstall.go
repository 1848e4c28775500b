// Package uninstall cleans up after an operator that has been uninstalled. It removes the operator's finalizers from
// APIKeys, so that the APIKeys and their definition can be deleted. It also deletes the operator's Lease. The job needs
// no database.
//
// The job revokes no key. An operator that is installed again, in the same namespace and with the same name of its
// Lease, adds its finalizers again. It also revokes the keys of APIKeys that were deleted in the meantime.
package uninstall

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/shared/telemetry"
)

// The job lists APIKeys, and removes the operator's finalizer from them.
// +kubebuilder:rbac:groups=lectern.dev,resources=apikeys,verbs=get;list;patch
//
// The job deletes the operator's Lease.
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=lectern,resources=leases,resourceNames=lectern-operator,verbs=delete

// requestTimeout bounds one request to the API server.
const requestTimeout = 10 * time.Second

// Run removes the operator's finalizer from all APIKeys of the watched namespaces, and deletes the Lease. If one object
// fails, Run continues with the next object and returns the error at the end. A namespace or a kind that does not exist
// is no error.
func Run(ctx context.Context, cfg Config) (err error) {
	if err := errors.Join(cfg.Cluster.Validate(), cfg.Lease.Validate()); err != nil {
		return err
	}
	tel, err := telemetry.Start(ctx, telemetry.Options{Service: "operator uninstall", Config: cfg.Telemetry, LogOutput: cfg.LogOutput})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tel.Shutdown(context.WithoutCancel(ctx))) }()
	cfg.Cluster.SetLogger(tel.Logger)
	kube, err := newClient(cfg)
	if err != nil {
		return err
	}
	var errs []error
	for _, namespace := range cfg.Cluster.Namespaces() {
		var keys v1alpha1.APIKeyList
		// A kind whose definition is gone has no objects.
		if err := kube.List(ctx, &keys, client.InNamespace(namespace)); err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("list the APIKeys: %w", err))
		}
		for i := range keys.Items {
			errs = append(errs, removeFinalizer(ctx, kube, tel.Logger, &keys.Items[i]))
		}
	}
	name := cfg.Lease.Key()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	if err := kube.Delete(ctx, lease); client.IgnoreNotFound(err) != nil {
		errs = append(errs, fmt.Errorf("delete the Lease: %w", err))
	}
	return errors.Join(errs...)
}

func newClient(cfg Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, coordinationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	kube, err := cfg.Cluster.Client("lectern-uninstall")
	if err != nil {
		return nil, err
	}
	kube.Timeout = requestTimeout
	c, err := client.New(kube, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("reach the API server: %w", err)
	}
	return c, nil
}

// removeFinalizer removes the operator's finalizer from an APIKey. It retries a few times if another writer has changed
// the APIKey. An APIKey that no longer exists is no error.
func removeFinalizer(ctx context.Context, kube client.Client, log *slog.Logger, key *v1alpha1.APIKey) error {
	var removed bool
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		before := key.DeepCopy()
		if removed = controllerutil.RemoveFinalizer(key, v1alpha1.FinalizerAPIKey); !removed {
			return nil
		}
		err := kube.Patch(ctx, key, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if apierrors.IsConflict(err) {
			if err := kube.Get(ctx, client.ObjectKeyFromObject(before), key); err != nil {
				return err
			}
		}
		return err
	})
	if err := client.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("remove the finalizer of the APIKey %s/%s: %w", key.Namespace, key.Name, err)
	}
	if !removed {
		return nil
	}
	attrs := []slog.Attr{slog.String("namespace", key.Namespace), slog.String("name", key.Name)}
	if !key.DeletionTimestamp.IsZero() {
		log.LogAttrs(ctx, slog.LevelWarn, "removed the finalizer of an APIKey that was being deleted; its keys are not revoked", append(attrs,
			slog.String("project_id", key.Spec.ProjectID), slog.Any("key_ids", append([]string{key.Status.KeyID}, key.Status.PreviousKeyIDs...)))...)
		return nil
	}
	log.LogAttrs(ctx, slog.LevelInfo, "removed the finalizer of an APIKey", attrs...)
	return nil
}
