package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lectern-dev/lectern/proxy/resource"
)

// ProjectStatus is the observed state of a project: its zone and offset in the region service, and its conditions.
type ProjectStatus struct {
	// observedGeneration is the metadata.generation that this status describes.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// region is the zone that the API returns, even if the spec sets none.
	//
	// +optional
	Region string `json:"region,omitempty"`

	// offsetInMinutes is the region's offset in minutes east of UTC, including daylight saving time, as in the answer of
	// POST /api/projects/region. The operator refreshes it when it changes.
	//
	// +optional
	OffsetInMinutes *int32 `json:"offsetInMinutes,omitempty"`

	// utcOffset is offsetInMinutes in the form "-08:00".
	//
	// +optional
	UTCOffset string `json:"utcOffset,omitempty"`

	// conditions are the object's conditions. Ready has a reason of Synced, Declared, RegionUnavailable, RegionRefused
	// or Conflict. Accepted reports whether this object declares the project, with a reason of Declared or Conflict.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Project is a project whose data is read through the API: its id, title and region. The operator sends the id, the
// title and the region to the region service.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=lproj,categories=lectern
// +kubebuilder:selectablefield:JSONPath=`.spec.projectId`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the region service has this version of the project"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why the object is ready or not"
// +kubebuilder:printcolumn:name="Project",type=string,JSONPath=`.spec.projectId`,description="The project's id"
// +kubebuilder:printcolumn:name="Region",type=string,JSONPath=`.status.region`,description="The zone that the API returns"
// +kubebuilder:printcolumn:name="Offset",type=string,JSONPath=`.status.utcOffset`,description="The region's current offset from UTC"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Retention",type=integer,priority=1,JSONPath=`.spec.retentionDays`,description="How many days entries are kept after their last update"
// +kubebuilder:printcolumn:name="Title",type=string,priority=1,JSONPath=`.spec.title`,description="The project's display name"
type Project struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is standard object metadata.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the desired state.
	//
	// +required
	Spec resource.ProjectSpec `json:"spec"`

	// status is the observed state, written by the operator.
	//
	// +optional
	Status ProjectStatus `json:"status,omitzero"`
}

// ProjectList is the answer of the API server to a request that lists Projects.
//
// +kubebuilder:object:root=true
type ProjectList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []Project `json:"items"`
}
