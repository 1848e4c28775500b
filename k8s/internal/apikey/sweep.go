package apikey

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
)

// sweepRetry is the longest delay before a failed sweep is retried.
const sweepRetry = 15 * time.Second

// spareFor is the least time for which the sweep spares keys whose object is not watched any more, or went unseen. The time
// counts from the first sweep of the leader that finds such an object.
const spareFor = time.Hour

// mostUnseen is how many keys the sweep revokes at once although nobody saw their objects and no other key is left. If there
// are more, the cluster may have lost its objects.
const mostUnseen = 5

// sweeper reads all active keys of the realm at start, after each deletion and every [Options.SweepEvery]. It revokes keys
// whose object no longer exists in any namespace. Keys of objects that are not watched wait for [spareFor]. If a sweep would
// revoke all keys, the keys of objects that the process never saw wait too. The sweeper also triggers a reconcile of an object
// whose keys were revoked by people, used by clients since the last status, or left undelivered.
//
// If each key has a watched object, a sweep costs one SQL statement and no request to the API server.
type sweeper struct {
	Options
	meters *meters
	nudged chan struct{}
	look   chan event.GenericEvent

	spared map[types.UID]time.Time // owners whose keys wait for spareFor, by the time of the first sweep that spared them

	mu   sync.Mutex
	seen map[types.UID]bool // objects that existed while this process ran, and that exist or have keys
}

var (
	_ manager.Runnable               = (*sweeper)(nil)
	_ manager.LeaderElectionRunnable = (*sweeper)(nil)
)

// NeedLeaderElection returns true: only the leader sweeps.
func (s *sweeper) NeedLeaderElection() bool { return true }

// nudge requests a sweep without waiting for it. Several requests before the next sweep cause one sweep.
func (s *sweeper) nudge() {
	select {
	case s.nudged <- struct{}{}:
	default:
	}
}

// saw notes that the object with the given UID exists. If the object is missing later, it was deleted.
func (s *sweeper) saw(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[uid] = true
}

func (s *sweeper) hasSeen(uid types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[uid]
}

// Start sweeps at once, every SweepEvery, and after each nudge, until ctx ends. After a failed sweep, the next one comes
// within sweepRetry, and no nudge brings it earlier.
func (s *sweeper) Start(ctx context.Context) error {
	for {
		next, nudged := s.SweepEvery, s.nudged
		if err := s.once(ctx); err != nil && ctx.Err() == nil {
			s.Log.WarnContext(ctx, "the sweep of keys failed; the operator retries", slog.Any("error", err))
			next, nudged = min(next, sweepRetry), nil
		}
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		case <-nudged:
			timer.Stop()
		}
	}
}

// held is the data of the key database about the active keys of one APIKey.
type held struct {
	ids         map[string]bool
	used        time.Time
	undelivered bool // a key is undelivered after Settle
}

// once does one sweep. It triggers a reconcile of each watched APIKey that [outOfDate] reports and that is not being
// deleted. Keys without a watched object go to [sweeper.revokeOrphans].
func (s *sweeper) once(ctx context.Context) error {
	now := s.Now()
	// Read the keys before the objects. An object exists before its first key, so no key seems orphaned by mistake.
	owners := map[types.UID]*held{}
	var keys []pgkeys.Owned
	err := s.Keys.EachOwned(ctx, s.Realm, func(k pgkeys.Owned) error {
		uid := types.UID(k.Owner.ID)
		o := owners[uid]
		if o == nil {
			o = &held{ids: map[string]bool{}}
			owners[uid] = o
		}
		o.ids[k.ID] = true
		if k.LastUsedAt.After(o.used) {
			o.used = k.LastUsedAt
		}
		o.undelivered = o.undelivered || k.DeliveredAt.IsZero() && !now.Before(k.CreatedAt.Add(s.Settle))
		keys = append(keys, k)
		return nil
	})
	if err != nil {
		return err
	}
	all, err := s.objects(ctx)
	if err != nil {
		return err
	}
	known := map[types.UID]bool{}
	for i := range all {
		object := &all[i]
		known[object.UID] = true
		if !object.DeletionTimestamp.IsZero() || !outOfDate(object, owners[object.UID], s.UseEvery) {
			continue
		}
		select {
		case s.look <- event.GenericEvent{Object: object}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	var orphans []pgkeys.Owned
	for _, k := range keys {
		if !known[types.UID(k.Owner.ID)] {
			orphans = append(orphans, k)
		}
	}
	if len(orphans) == 0 {
		s.spared = nil
	} else if err := s.revokeOrphans(ctx, orphans, len(orphans) == len(keys), now); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.seen, func(uid types.UID, _ bool) bool { return !known[uid] && owners[uid] == nil })
	return nil
}

// namespaces returns the namespaces whose APIKeys the sweep lists. The one name "" stands for all namespaces.
func (s *sweeper) namespaces() []string {
	if len(s.Namespaces) == 0 {
		return []string{metav1.NamespaceAll}
	}
	return s.Namespaces
}

// objects returns the APIKeys of the watched namespaces from the cache.
func (s *sweeper) objects(ctx context.Context) ([]v1alpha1.APIKey, error) {
	var all []v1alpha1.APIKey
	for _, namespace := range s.namespaces() {
		var list v1alpha1.APIKeyList
		if err := s.Client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("list APIKeys: %w", err)
		}
		all = append(all, list.Items...)
	}
	return all, nil
}

// outOfDate reports whether an object needs a reconcile by the database. It does if its current key is gone, if a key
// is undelivered, or if a use is newer than the status by useEvery. o is nil if the object has no active keys.
func outOfDate(object *v1alpha1.APIKey, o *held, useEvery time.Duration) bool {
	status := object.Status
	if o == nil {
		return status.KeyID != ""
	}
	if status.KeyID != "" && !o.ids[status.KeyID] || o.undelivered {
		return true
	}
	return !o.used.IsZero() && (status.LastUsedAt == nil || !o.used.Before(status.LastUsedAt.Add(useEvery)))
}

// revokeOrphans revokes the keys in orphans whose object does not exist, or has not been watched for spareFor. It asks the API
// server, because the cache may lack new objects, and has no objects of other namespaces. all reports whether the realm has no
// other keys. If it has none, keys of more than mostUnseen objects that went unseen wait for spareFor too.
func (s *sweeper) revokeOrphans(ctx context.Context, orphans []pgkeys.Owned, all bool, now time.Time) error {
	there := map[types.UID]string{}
	if err := s.present(ctx, there); err != nil {
		return err
	}
	unseen := 0
	for _, k := range orphans {
		uid := types.UID(k.Owner.ID)
		if _, exists := there[uid]; exists {
			s.saw(uid)
		} else if !s.hasSeen(uid) {
			unseen++
		}
	}
	doubt := all && unseen > mostUnseen
	doubted := 0
	spared := map[types.UID]time.Time{}
	var errs []error
	for _, k := range orphans {
		uid, why, said := types.UID(k.Owner.ID), objectGone, "revoked a key whose object is gone"
		namespace, exists := there[uid]
		if exists {
			if len(s.Namespaces) == 0 || slices.Contains(s.Namespaces, namespace) {
				continue
			}
			why, said = notWatched, "revoked a key whose object is in a namespace that is no longer watched"
		}
		since, waits := s.spared[uid]
		if exists || !s.hasSeen(uid) && (doubt || waits) {
			if !waits {
				since = now
			}
			if !waits && !exists {
				doubted++
			}
			if spared[uid] = since; now.Before(since.Add(spareFor)) {
				continue
			}
		}
		if _, err := s.Keys.Revoke(ctx, k.ProjectID, k.ID); err != nil && !errors.Is(err, pgkeys.ErrNotFound) {
			errs = append(errs, err)
			continue
		}
		s.meters.revoked(ctx, why)
		s.Log.InfoContext(ctx, said, slog.String("owner", k.Owner.Name), slog.String("project_id", k.ProjectID), slog.String("key_id", k.ID))
	}
	s.spared = spared
	if doubted > 0 {
		s.meters.postpone(ctx, doubted)
		s.Log.ErrorContext(ctx, "all APIKeys are gone, and the operator did not see their deletion; the operator revokes their keys later", slog.Int("keys", doubted), slog.Duration("after", spareFor))
	}
	return errors.Join(errs...)
}

// present adds all APIKeys of the cluster to the map there: the namespace of each APIKey by its UID.
func (s *sweeper) present(ctx context.Context, there map[types.UID]string) error {
	page := metav1.PartialObjectMetadataList{}
	page.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("APIKeyList"))
	for {
		err := s.Reader.List(ctx, &page, client.Limit(500), client.Continue(page.Continue))
		if err != nil {
			return fmt.Errorf("list APIKeys: %w", err)
		}
		for _, o := range page.Items {
			there[o.UID] = o.Namespace
		}
		if page.Continue == "" {
			return nil
		}
	}
}
