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
	"github.com/lectern-dev/lectern/proxy/policy"
	"github.com/lectern-dev/lectern/proxy/resource"
	"github.com/lectern-dev/lectern/shared/limits"
	"github.com/lectern-dev/lectern/shared/renewal"
)

// Keys of the Secret of a fetched Credential, besides [manifests.AccessToken].
const (
	refreshTokenKey = "refresh-token"
	stateKey        = "state" // a [state], as JSON
)

// state holds the stored facts about one fetched token.
type state struct {
	renewal.State
	// Asked identifies the last value of lectern.dev/fetch that the operator handled.
	Asked string `json:"asked,omitempty"`
	// Accepted is where the endpoint accepted the client's secret last, if that is not where the spec has it.
	Accepted resource.ClientAuthentication `json:"accepted,omitempty"`
}

// fetchers is how many fetched Credentials are reconciled at a time, and namespaceFetchers how many of one namespace. Slow
// token endpoints delay only fetched Credentials of their namespace. A Credential over the share waits for about shareRetry.
const (
	fetchers          = 32
	namespaceFetchers = fetchers / 4
	shareRetry        = time.Second
)

// verdictOn returns the verdict on a Credential with this state. The Credential is ready while the token is valid.
func verdictOn(s state, now time.Time) controller.Verdict {
	expires := s.ExpiresAt.UTC().Format(time.RFC3339)
	valid := s.ExpiresAt.After(now)
	switch {
	case valid && s.Fault == "":
		v := controller.Verdict{Ready: true, Reason: v1alpha1.ReasonValid, Message: fmt.Sprintf("The operator fetched a token that expires at %s, and fetches the next one at %s.", expires, s.NextAt.UTC().Format(time.RFC3339))}
		if s.Accepted != "" {
			v.Message += fmt.Sprintf(" The token endpoint takes clientAuthentication: %s, and refused another.", s.Accepted)
		}
		if v.Warns = s.Warning != ""; v.Warns {
			v.Message += " Warning: " + s.Warning + "."
		}
		return v
	case valid:
		return controller.Verdict{Ready: true, Warns: true, Reason: v1alpha1.ReasonFetchFailing, Message: fmt.Sprintf("The token expires at %s. The operator cannot fetch the next one, and retries: %s.", expires, s.Fault)}
	case s.Fault != "":
		return controller.Verdict{Reason: v1alpha1.ReasonFetchFailing, Message: fmt.Sprintf("There is no valid token. The operator cannot fetch one, and retries: %s.", s.Fault)}
	}
	return controller.Verdict{Reason: v1alpha1.ReasonFetching, Message: "The operator has not fetched the token yet."}
}

// tokens fetches the tokens of Credentials by the steps of package [renewal], and keeps each in a Secret of the
// Credential's namespace. A crash, or a change of the leader, may come at any point. If the endpoint refuses a refresh
// token because an answer was lost, the condition of the Credential says what to do.
type tokens struct {
	controller.Common
	client   client.Client
	endpoint *tokenendpoint.Client // nil: tokens are not fetched
	fetches  metric.Int64Counter
	workers  limits.Shares // of fetchers

	mu        sync.Mutex
	unwritten map[types.NamespacedName]result
}

// result is the outcome of a request, until it is in the operator's Secret.
type result struct {
	uid    types.UID // of the Credential
	state  state
	access string // the token; "": the present one stays
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
	spec, now := specOf(request), t.Now()
	s, asked := stateOf(own), ""
	due := s.State
	if value := object.Annotations[v1alpha1.AnnotationFetch]; value != "" {
		asked = digestOf(value)
	}
	if asked != "" && asked != s.Asked {
		due.Request = "" // as after a change of the request
	}
	step := renewal.Plan(due, now, spec, nil)
	if !step.Send {
		return t.idle(ctx, object, own, s, now, step.Wait)
	}
	if s.Request != spec.Request {
		s.Accepted = ""
	}
	s.State, s.Asked = step.Store, asked
	if err := t.write(ctx, object, own, s, nil); err != nil {
		return t.unwritable(err)
	}
	request.RefreshToken, request.Accepted = step.Token, s.Accepted
	token, err := t.endpoint.Fetch(ctx, request)
	step = renewal.Plan(step.Store, t.Now(), spec, answerOf(object, token, err))
	s.State, s.Accepted = step.Store, token.Accepted
	t.mu.Lock()
	t.unwritten[client.ObjectKeyFromObject(object)] = result{object.UID, s, token.Access}
	t.mu.Unlock()
	if err := t.writeUnwritten(context.WithoutCancel(ctx), object); err != nil {
		return t.unwritable(err)
	}
	t.count(ctx, err)
	return verdictOn(s, t.Now()), max(step.Wait, time.Millisecond), nil
}

// idle returns the verdict and the waiting time while no request is due. It removes a token that has expired.
func (t *tokens) idle(ctx context.Context, object *v1alpha1.Credential, own *corev1.Secret, s state, now time.Time, wait time.Duration) (controller.Verdict, time.Duration, error) {
	left := s.ExpiresAt.Sub(now)
	switch {
	case left > 0:
		wait = min(wait, left)
	case len(own.Data[manifests.AccessToken]) > 0:
		if err := t.write(ctx, object, own, s, new(string)); err != nil {
			return t.unwritable(err)
		}
	}
	return verdictOn(s, now), wait, nil
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
	}{{"clientSecretRef", spec.ClientSecretRef, &r.ClientSecret}, {"refreshTokenRef", spec.RefreshTokenRef, &r.RefreshToken}, {"privateKeyRef", spec.PrivateKeyRef, &r.PrivateKey}} {
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
		switch n := len(*from.to); {
		case n == 0:
			return invalid(v1alpha1.ReasonSecretValueInvalid, "the key %q of the Secret %q is empty", from.ref.Key, from.ref.Name)
		case n > policy.MaxValue:
			return invalid(v1alpha1.ReasonSecretValueInvalid, "the key %q of the Secret %q has %d bytes; allowed: up to %d", from.ref.Key, from.ref.Name, n, policy.MaxValue)
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

// write puts the state into the operator's Secret, with a token unless access is nil, and creates the Secret if own is
// new. An empty token removes the present one. write fails if the Secret has changed since it was read.
func (t *tokens) write(ctx context.Context, object *v1alpha1.Credential, own *corev1.Secret, s state, access *string) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	before := own.DeepCopy()
	if own.Data == nil {
		own.Data = map[string][]byte{}
	}
	own.Data[stateKey], own.Data[refreshTokenKey] = text, []byte(s.Refresh)
	if access != nil {
		own.Data[manifests.AccessToken] = []byte(*access)
	}
	maps.DeleteFunc(own.Data, func(_ string, value []byte) bool { return len(value) == 0 })
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
	var access *string
	if done.access != "" {
		access = &done.access
	}
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		own, err := t.own(ctx, object)
		if err != nil {
			return err
		}
		if own.ResourceVersion != "" && !metav1.IsControlledBy(own, object) {
			return nil // somebody has replaced the Secret; keep says so
		}
		return t.write(ctx, object, own, done.state, access)
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

// answerOf returns the outcome of a request. If the endpoint refused the refresh token, the fault also says what to do.
func answerOf(object *v1alpha1.Credential, token tokenendpoint.Token, err error) *renewal.Answer {
	answer := &renewal.Answer{Refresh: token.Refresh, Life: token.Life, Warning: token.Warning}
	if err == nil {
		return answer
	}
	answer.Fault = err.Error()
	if fault, ok := errors.AsType[*tokenendpoint.Fault](err); ok {
		answer.Refused = fault.Refused
		if ref := object.Spec.ValueFrom.OAuth2.RefreshTokenRef; fault.Code == "invalid_grant" && ref != nil {
			answer.Fault += fmt.Sprintf(": the refresh token is used up or revoked; put another into the key %q of the Secret %q", ref.Key, ref.Name)
		}
	}
	return answer
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
func stateOf(own *corev1.Secret) (s state) {
	if json.Unmarshal(own.Data[stateKey], &s) != nil {
		return state{}
	}
	s.Refresh = string(own.Data[refreshTokenKey])
	return s
}

// specOf returns the specification of a request. A refresh token of one endpoint and client is never sent to another.
func specOf(r tokenendpoint.Request) renewal.Spec {
	return renewal.Spec{Request: digestOf(r), First: digestOf([]string{r.TokenURL, r.ClientID, r.RefreshToken}), Given: r.RefreshToken}
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
