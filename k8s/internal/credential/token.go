package credential

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/internal/controller"
	"github.com/lectern-dev/lectern/k8s/internal/tokenendpoint"
	"github.com/lectern-dev/lectern/k8s/manifests"
	"github.com/lectern-dev/lectern/proxy/resource"
)

// Keys of the Secret of a fetched Credential, besides [manifests.AccessToken].
const (
	refreshTokenKey = "refresh-token"
	stateKey        = "state" // a tokenState, as JSON
)

// tokenState is the operator's record of a fetched Credential. The record contains no token.
type tokenState struct {
	// Request identifies the settings and secrets of the last request. After a change, the operator requests another
	// token.
	Request string `json:"request,omitempty"`
	// First identifies the first refresh token with its endpoint and client. The present token descends from that first token.
	First string `json:"first,omitempty"`
	// ExpiresAt is when the access token expires. Zero: there is none.
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
	// NextAt is when the operator requests the next token.
	NextAt time.Time `json:"nextAt,omitzero"`
	// Failures counts the failed requests since the last token, or since a change of Request. Fault says why the last
	// request failed.
	Failures int    `json:"failures,omitempty"`
	Fault    string `json:"fault,omitempty"`
	// ClaimedAt is when an operator began a request whose result is not written yet.
	ClaimedAt time.Time `json:"claimedAt,omitzero"`
}

const (
	// claimFor is how long no other operator requests a token after one has begun to. A request and the write of its
	// result normally take less.
	claimFor = time.Minute
	// shortest is the shortest delay after a request before the next with the same settings. The delay doubles with
	// each failure.
	shortest = 10 * time.Second
	// longest is the longest delay after a failed request. A refused request is repeated after this delay, or sooner while a
	// token is valid: after a quarter of the rest of its life.
	longest = 10 * time.Minute
	// fetchers is how many tokens are requested at a time. Slow token endpoints delay only fetched Credentials.
	fetchers = 16
)

// wait returns the time until the next request may be sent. Zero: now. The argument request identifies the settings and
// secrets of that request. If they have changed since the last request, the next one need not wait for NextAt.
func (s tokenState) wait(request string, now time.Time) time.Duration {
	if claimed := s.ClaimedAt.Add(claimFor).Sub(now); claimed > 0 && claimed <= 2*claimFor {
		return claimed
	}
	if s.Request != request {
		return 0
	}
	return max(s.NextAt.Sub(now), 0)
}

// next returns the state after a request that was sent at the given time, with the time of the next request. err is why
// the request failed, or nil.
func (s tokenState) next(sent time.Time, t tokenendpoint.Token, err error) tokenState {
	s.ClaimedAt = time.Time{}
	if err == nil {
		s.ExpiresAt, s.NextAt = sent.Add(t.Life), sent.Add(max(t.Life*2/3, shortest))
		s.Failures, s.Fault = 0, ""
		return s
	}
	delay := longest
	if fault, ok := errors.AsType[*tokenendpoint.Fault](err); (!ok || !fault.Refused) && s.Failures < 6 {
		delay = shortest << s.Failures
	}
	if left := s.ExpiresAt.Sub(sent); left > 0 {
		delay = min(delay, max(left/4, shortest)) // a token of a short life must not end before the next request
	}
	s.Failures++
	s.NextAt, s.Fault = sent.Add(delay), err.Error()
	return s
}

// verdict returns the verdict on a Credential with this state. It is ready while the token is valid.
func (s tokenState) verdict(now time.Time) controller.Verdict {
	expires := s.ExpiresAt.UTC().Format(time.RFC3339)
	valid := s.ExpiresAt.After(now)
	switch {
	case valid && s.Fault == "":
		return controller.Verdict{Ready: true, Reason: v1alpha1.ReasonValid, Message: fmt.Sprintf("The operator fetched a token that expires at %s, and fetches the next one at %s.", expires, s.NextAt.UTC().Format(time.RFC3339))}
	case valid:
		return controller.Verdict{Ready: true, Warns: true, Reason: v1alpha1.ReasonFetchFailing, Message: fmt.Sprintf("The token expires at %s. The operator cannot fetch the next one, and retries: %s.", expires, s.Fault)}
	case s.Fault != "":
		return controller.Verdict{Reason: v1alpha1.ReasonFetchFailing, Message: fmt.Sprintf("There is no valid token. The operator cannot fetch one, and retries: %s.", s.Fault)}
	}
	return controller.Verdict{Reason: v1alpha1.ReasonFetching, Message: "The operator has not fetched the token yet."}
}

// tokens fetches the tokens of Credentials, and keeps each in a Secret of the Credential's namespace. A crash, or a
// change of the leader, may come at any point:
//
//  1. The operator writes into the Secret that it begins a request. No other operator then sends one for a minute.
//  2. The operator sends the request, even if it is about to stop.
//  3. The operator writes the tokens. If it cannot, it holds them in memory and sends no other request before it can.
//
// A crash between 2 and 3 loses an answer. If the answer replaced the refresh token, the endpoint refuses the old one.
// The condition of the Credential then says what to do.
type tokens struct {
	controller.Common
	client   client.Client
	endpoint *tokenendpoint.Client // nil: tokens are not fetched
	fetches  metric.Int64Counter

	mu        sync.Mutex
	unwritten map[types.NamespacedName]result
}

// result is the outcome of a request, until it is in the operator's Secret.
type result struct {
	uid   types.UID // of the Credential
	state tokenState
	token tokenendpoint.Token // without Access: there is none
}

// newTokens returns a tokens that exports this metric:
//
//	lectern.operator.token.fetches{outcome}   requests to token endpoints: fetched, refused or failed
func newTokens(c controller.Common, kube client.Client, endpoint *tokenendpoint.Client) (*tokens, error) {
	fetches, err := c.Meter.Meter("github.com/lectern-dev/lectern/k8s/internal/credential").Int64Counter("lectern.operator.token.fetches",
		metric.WithDescription("Requests to token endpoints, by outcome: fetched, refused or failed."))
	return &tokens{Common: c, client: kube, endpoint: endpoint, fetches: fetches, unwritten: map[types.NamespacedName]result{}}, err
}

// keep fetches the token of a Credential if that is due. It returns the verdict, and the time until keep is to be
// called again; 0: no time is set.
func (t *tokens) keep(ctx context.Context, object *v1alpha1.Credential) (controller.Verdict, time.Duration, error) {
	if t.endpoint == nil {
		return controller.Verdict{Reason: v1alpha1.ReasonFetchDisabled, Message: "The operator does not fetch tokens: FETCH_CREDENTIALS is not true (in the chart: operator.fetchCredentials)."}, 0, nil
	}
	if err := t.writeUnwritten(ctx, object); err != nil {
		return controller.Verdict{}, 0, err
	}
	request, verdict, err := t.request(ctx, object)
	if err != nil || verdict.Reason != "" {
		return verdict, 0, err
	}
	own, err := t.own(ctx, object)
	if err != nil {
		return controller.Verdict{}, 0, err
	}
	if own.ResourceVersion != "" && !metav1.IsControlledBy(own, object) {
		return controller.Verdict{Reason: v1alpha1.ReasonSecretNotOwned, Message: fmt.Sprintf("The token would be kept in the Secret %q, which exists and is not the operator's.", own.Name)}, 0, nil
	}
	state := stateOf(own)
	digest, first := identify(request)
	now := t.Now()
	if wait := state.wait(digest, now); wait > 0 {
		return t.idle(ctx, object, own, state, now, wait)
	}
	claim := map[string][]byte{}
	if refresh := own.Data[refreshTokenKey]; state.First != first {
		claim[refreshTokenKey] = nil // whatever happens next, the token before the given one is not sent any more
	} else if len(refresh) > 0 {
		request.RefreshToken = string(refresh)
	}
	if state.Request != digest {
		state.Failures = 0
	}
	state.Request, state.First, state.ClaimedAt = digest, first, now
	if err := t.write(ctx, object, own, claim, state); err != nil {
		return t.unwritable(err)
	}
	done := result{uid: object.UID}
	done.token, err = t.endpoint.Fetch(ctx, request)
	done.state = state.next(now, done.token, explain(object, err))
	t.count(ctx, err)
	t.mu.Lock()
	t.unwritten[client.ObjectKeyFromObject(object)] = done
	t.mu.Unlock()
	if err := t.writeUnwritten(context.WithoutCancel(ctx), object); err != nil {
		return t.unwritable(err)
	}
	now = t.Now()
	return done.state.verdict(now), max(done.state.wait(digest, now), time.Millisecond), nil
}

// idle returns the verdict and the waiting time while no request is due. It removes a token that has expired.
func (t *tokens) idle(ctx context.Context, object *v1alpha1.Credential, own *corev1.Secret, s tokenState, now time.Time, wait time.Duration) (controller.Verdict, time.Duration, error) {
	left := s.ExpiresAt.Sub(now)
	switch {
	case left > 0:
		wait = min(wait, left)
	case len(own.Data[manifests.AccessToken]) > 0:
		if err := t.write(ctx, object, own, map[string][]byte{manifests.AccessToken: nil}, s); err != nil {
			return t.unwritable(err)
		}
	}
	return s.verdict(now), wait, nil
}

// request returns the request for a Credential's token, with the secrets that its spec names. The verdict, if it has a
// reason, says why there is no request.
func (t *tokens) request(ctx context.Context, object *v1alpha1.Credential) (tokenendpoint.Request, controller.Verdict, error) {
	spec := object.Spec.ValueFrom.OAuth2
	r := tokenendpoint.Request{OAuth2: *spec}
	for _, from := range []struct {
		field string
		ref   *resource.SecretKeyRef
		to    *string
	}{{"clientSecretRef", spec.ClientSecretRef, &r.ClientSecret}, {"refreshTokenRef", spec.RefreshTokenRef, &r.RefreshToken}} {
		if from.ref == nil {
			continue
		}
		invalid := func(reason, text string, a ...any) (tokenendpoint.Request, controller.Verdict, error) {
			return r, controller.Verdict{Reason: reason, Message: "spec.valueFrom.oauth2." + from.field + ": " + fmt.Sprintf(text, a...)}, nil
		}
		var s corev1.Secret
		err := t.client.Get(ctx, types.NamespacedName{Namespace: object.Namespace, Name: from.ref.Name}, &s)
		value, ok := s.Data[from.ref.Key]
		switch {
		case apierrors.IsNotFound(err):
			return invalid(v1alpha1.ReasonSecretNotFound, "there is no Secret %q", from.ref.Name)
		case err != nil:
			return r, controller.Verdict{}, err
		case !ok:
			return invalid(v1alpha1.ReasonSecretKeyNotFound, "the Secret %q has no key %q", from.ref.Name, from.ref.Key)
		}
		*from.to = strings.TrimRight(string(value), "\r\n") // files and echo end in line breaks
		if *from.to == "" {
			return invalid(v1alpha1.ReasonSecretValueInvalid, "the key %q of the Secret %q is empty", from.ref.Key, from.ref.Name)
		}
	}
	return r, controller.Verdict{}, nil
}

// own returns the operator's Secret for a Credential. Without a resource version, the Secret does not exist yet.
func (t *tokens) own(ctx context.Context, object *v1alpha1.Credential) (*corev1.Secret, error) {
	name := types.NamespacedName{Namespace: object.Namespace, Name: manifests.ValueRef(object.Name, object.Spec.ValueFrom).Name}
	var s corev1.Secret
	err := t.client.Get(ctx, name, &s)
	if !apierrors.IsNotFound(err) {
		return &s, err
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: name.Namespace, Name: name.Name, Labels: map[string]string{v1alpha1.LabelManaged: "true"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(object, v1alpha1.SchemeGroupVersion.WithKind("Credential"))},
		},
		Type: corev1.SecretTypeOpaque,
	}, nil
}

// write puts values and the state into the operator's Secret, and creates the Secret if own is new. A nil value removes
// its key. write fails if the Secret has changed since it was read.
func (t *tokens) write(ctx context.Context, object *v1alpha1.Credential, own *corev1.Secret, values map[string][]byte, s tokenState) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	before := own.DeepCopy()
	if own.Data == nil {
		own.Data = map[string][]byte{}
	}
	maps.Copy(own.Data, values)
	own.Data[stateKey] = text
	maps.DeleteFunc(own.Data, func(_ string, value []byte) bool { return value == nil })
	if own.ResourceVersion == "" {
		err = t.client.Create(ctx, own, controller.FieldOwner)
	} else {
		err = t.client.Patch(ctx, own, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), controller.FieldOwner)
	}
	if err != nil {
		return fmt.Errorf("write the Secret of a fetched Credential: %w", err)
	}
	return nil
}

// writeUnwritten writes the result of the last request if it is not written yet. It drops the result if the Secret is
// no longer the operator's.
func (t *tokens) writeUnwritten(ctx context.Context, object *v1alpha1.Credential) error {
	t.mu.Lock()
	done, found := t.unwritten[client.ObjectKeyFromObject(object)]
	t.mu.Unlock()
	if !found || done.uid != object.UID {
		return nil
	}
	values := map[string][]byte{}
	if done.token.Access != "" {
		values[manifests.AccessToken] = []byte(done.token.Access)
	}
	if done.token.Refresh != "" {
		values[refreshTokenKey] = []byte(done.token.Refresh)
	}
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		own, err := t.own(ctx, object)
		if err != nil {
			return err
		}
		if own.ResourceVersion != "" && !metav1.IsControlledBy(own, object) {
			return nil // somebody has replaced the Secret; keep says so
		}
		return t.write(ctx, object, own, values, done.state)
	})
	if err == nil {
		t.forget(client.ObjectKeyFromObject(object))
	}
	return err
}

// forget drops the result of the last request of a Credential, because it is written or the Credential is gone.
func (t *tokens) forget(name types.NamespacedName) {
	t.mu.Lock()
	delete(t.unwritten, name)
	t.mu.Unlock()
}

// unwritable returns the verdict SecretRefused if the API server forbids the write of the Secret, and otherwise err.
func (t *tokens) unwritable(err error) (controller.Verdict, time.Duration, error) {
	if apierrors.IsForbidden(err) {
		return controller.Verdict{Reason: v1alpha1.ReasonSecretRefused, Message: "The operator may not write the Secret of the token: a right is missing, or a quota is exceeded."}, refusedRetry, nil
	}
	return controller.Verdict{}, 0, err
}

// explain returns err. If the endpoint refused the refresh token, the error also says what to do.
func explain(object *v1alpha1.Credential, err error) error {
	fault, ok := errors.AsType[*tokenendpoint.Fault](err)
	if ref := object.Spec.ValueFrom.OAuth2.RefreshTokenRef; ok && fault.Code == "invalid_grant" && ref != nil {
		return fmt.Errorf("%w: the refresh token is used up or revoked; put another into the key %q of the Secret %q", err, ref.Key, ref.Name)
	}
	return err
}

// count counts a request by its outcome.
func (t *tokens) count(ctx context.Context, err error) {
	outcome := "fetched"
	if fault, ok := errors.AsType[*tokenendpoint.Fault](err); ok && fault.Refused {
		outcome = "refused"
	} else if err != nil {
		outcome = "failed"
	}
	t.fetches.Add(ctx, 1, metric.WithAttributes(attribute.String("outcome", outcome)))
}

// stateOf reads the state in the operator's Secret. A state that cannot be read counts as none.
func stateOf(own *corev1.Secret) (s tokenState) {
	if json.Unmarshal(own.Data[stateKey], &s) != nil {
		return tokenState{}
	}
	return s
}

// identify returns the [tokenState].Request and First of a request. A refresh token of one endpoint and client is never
// sent to another.
func identify(r tokenendpoint.Request) (request, first string) {
	return digestOf(r), digestOf([]string{r.TokenURL, r.ClientID, r.RefreshToken})
}

// digestOf returns the SHA-256 of a value's JSON, in hexadecimal. It panics if the value has no JSON form.
func digestOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // requests and strings have a JSON form
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
