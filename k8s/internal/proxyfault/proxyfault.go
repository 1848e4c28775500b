// Package proxyfault turns the faults that the credential proxy finds in an object into the object's condition. The
// messages come from the proxy, and the reasons are constants of v1alpha1.
package proxyfault

import (
	"slices"
	"strings"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/internal/controller"
	"github.com/lectern-dev/lectern/proxy/manifest"
)

// byWeight lists the causes of faults in the order in which a user has to correct the faults. Each cause has a reason
// of the condition Ready.
var byWeight = [...]struct {
	cause  manifest.Cause
	reason string
}{
	{manifest.NotDeclared, v1alpha1.ReasonNotDeclared},
	{manifest.NotGranted, v1alpha1.ReasonNotGranted},
	{manifest.Duplicate, v1alpha1.ReasonConflict},
	{manifest.Invalid, v1alpha1.ReasonInvalid},
	{manifest.SecretMissing, v1alpha1.ReasonSecretNotFound},
	{manifest.SecretKeyMissing, v1alpha1.ReasonSecretKeyNotFound},
	{manifest.ValueInvalid, v1alpha1.ReasonSecretValueInvalid},
	{manifest.CredentialMissing, v1alpha1.ReasonCredentialNotFound},
	{manifest.CredentialFaulty, v1alpha1.ReasonCredentialNotReady},
}

// Of returns the faults in faults that belong to object.
func Of(faults []*manifest.Fault, object manifest.ObjectKey) []*manifest.Fault {
	return slices.DeleteFunc(slices.Clone(faults), func(f *manifest.Fault) bool { return f.Of != object })
}

// Verdict returns the verdict on an object with these faults and warnings. Without faults, the object is ready, and the
// message is well, followed by the warnings. With faults, the reason belongs to the fault that the user has to correct
// first.
func Verdict(faults, warnings []*manifest.Fault, well string) controller.Verdict {
	if len(faults) == 0 {
		for _, w := range warnings {
			well += " Warning: " + w.Reason + "."
		}
		return controller.Verdict{Ready: true, Warns: len(warnings) > 0, Reason: v1alpha1.ReasonValid, Message: well}
	}
	v := controller.Verdict{Reason: v1alpha1.ReasonInvalid}
	heaviest := len(byWeight)
	var said []string
	for _, f := range faults {
		said = append(said, f.Reason)
		for weight, w := range byWeight {
			if w.cause == f.Cause && weight < heaviest {
				heaviest, v.Reason = weight, w.reason
			}
		}
	}
	v.Message = strings.Join(said, "; ")
	return v
}
