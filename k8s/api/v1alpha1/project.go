package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DeletionPolicy decides about a project's title and region when the Project object is deleted.
//
// +kubebuilder:validation:Enum=Retain;Delete
type DeletionPolicy string

// The deletion policies.
const (
	// RetainOnDelete keeps the project in the region service.
	RetainOnDelete DeletionPolicy = "Retain"
	// DeleteOnDelete removes the project from the region service.
	DeleteOnDelete DeletionPolicy = "Delete"
)

// ProjectSpec is the desired state of a project.
type ProjectSpec struct {
	// projectId is the project's id in the paths of the API: 1 to 256 letters, digits and . _ ~ -, of which the first is a
	// letter or digit. It is immutable. Of several Projects with the same id, the first one is in force. The others stay
	// in conflict, even if the first one is deleted, until they are changed or created again.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9][A-Za-z0-9._~-]*$')",message="projectId has letters, digits and . _ ~ -, of which the first is a letter or digit, such as pr_demo",messageExpression="'projectId is ' + self + '; allowed: letters, digits and . _ ~ -, of which the first is a letter or digit, such as pr_demo'"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="projectId is immutable: make another Project for another id"
	ProjectID string `json:"projectId"`

	// title is the project's display name, 1 to 1024 characters. It is public: GET /projects/{projectId} returns it.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^[^\x00]+$`
	Title string `json:"title"`

	// region is the project's zone in the tz database, such as Europe/Berlin. Not set: none, for which the API returns
	// America/Los_Angeles.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$`
	// +kubebuilder:validation:XValidation:rule="!(self in ['Local', 'localtime', 'posixrules'])",message="region is a zone of the tz database, such as Europe/Berlin"
	Region string `json:"region,omitempty"`

	// deletionPolicy decides about title and region when this object is deleted: Retain keeps them, Delete removes the
	// project from the region service. Entries, embeddables and experiments stay in either case.
	//
	// +optional
	// +kubebuilder:default=Retain
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// retentionDays is how many days entries are kept after their last update, 1 to 36500. The chart's retention job
	// permanently removes older ones with their events. Not set: the chart's default (retention.days). If that is not set
	// either, entries are kept forever.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=36500
	RetentionDays int32 `json:"retentionDays,omitempty"`

	// allowedNamespaces are further namespaces whose APIKeys, Credentials and ProxyEndpoints may belong to this project;
	// "*" for all. Those of other namespaces are not in force.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$`
	AllowedNamespaces []string `json:"allowedNamespaces,omitempty"`
}

// ProjectStatus is the observed state of a project.
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

	// conditions are the object's conditions. Ready has a reason of Synced, RegionUnavailable, RegionRefused, Conflict or
	// Deleting. Accepted reports whether this object declares the project, with a reason of Declared or Conflict.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Project is a project whose data is read through the API: its id, title and region. The operator sends them to the
// region service.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=lproj,categories=lectern
// +kubebuilder:selectablefield:JSONPath=`.spec.projectId`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the region service has this version of the project"
// +kubebuilder:printcolumn:name="Project",type=string,JSONPath=`.spec.projectId`,description="The project's id"
// +kubebuilder:printcolumn:name="Region",type=string,JSONPath=`.status.region`,description="The zone that the API returns"
// +kubebuilder:printcolumn:name="Offset",type=string,JSONPath=`.status.utcOffset`,description="The region's current offset from UTC"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why the object is ready or not"
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
	Spec ProjectSpec `json:"spec"`

	// status is the observed state, written by the operator.
	//
	// +optional
	Status ProjectStatus `json:"status,omitzero"`
}

// ProjectList is a list of Projects.
//
// +kubebuilder:object:root=true
type ProjectList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []Project `json:"items"`
}
