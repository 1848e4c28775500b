package resource

// ProjectSpec is the desired state of a project: its id, title, region and retention, and the namespaces that may use
// it.
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
	ProjectID string `json:"projectId" yaml:"projectId"`

	// title is the project's display name, 1 to 1024 characters. It is public: GET /projects/{projectId} returns it.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^[^\x00]+$`
	Title string `json:"title" yaml:"title"`

	// region is the project's zone in the tz database, such as Europe/Berlin. Not set: none, for which the API returns
	// America/Los_Angeles.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$`
	// +kubebuilder:validation:XValidation:rule="!(self in ['Local', 'localtime', 'posixrules'])",message="region is a zone of the tz database, such as Europe/Berlin",messageExpression="'region is ' + self + '; allowed: a zone of the tz database, such as Europe/Berlin'"
	Region string `json:"region,omitempty" yaml:"region"`

	// retentionDays is how many days entries are kept after their last update, 1 to 36500. The chart's retention job
	// permanently removes older ones with their events. Not set: the chart's default (retention.days). If that is not set
	// either, entries are kept forever.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=36500
	RetentionDays int32 `json:"retentionDays,omitempty" yaml:"retentionDays"`

	// allowedNamespaces are further namespaces whose APIKeys, Credentials and ProxyEndpoints may belong to this project;
	// "*" for all. Those of other namespaces are not in force.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$`
	AllowedNamespaces []string `json:"allowedNamespaces,omitempty" yaml:"allowedNamespaces"`
}
