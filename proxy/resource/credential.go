package resource

// Place is a part of a request that may hold a credential's value.
//
// +kubebuilder:validation:Enum=Header;URL;Body
type Place string

// The parts of a request that may hold a credential's value.
const (
	InHeader Place = "Header"
	InURL    Place = "URL"
	InBody   Place = "Body"
)

// CredentialSpec is the desired state of a credential: a value, and the requests that may use the value.
//
// +kubebuilder:validation:XValidation:rule="!has(self.bodyPaths) || size(self.bodyPaths) == 0 || !has(self.places) || size(self.places) == 0 || 'Body' in self.places",message="bodyPaths has no meaning, because places has no Body"
// +kubebuilder:validation:XValidation:rule="!has(self.headers) || size(self.headers) == 0 || !has(self.places) || size(self.places) == 0 || 'Header' in self.places",message="headers has no meaning, because places has no Header"
type CredentialSpec struct {
	// projectId is the id of the project whose endpoints may use the credential. It is immutable.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9][A-Za-z0-9._~-]*$')",message="projectId has letters, digits and . _ ~ -, of which the first is a letter or digit, such as pr_demo",messageExpression="'projectId is ' + self + '; allowed: letters, digits and . _ ~ -, of which the first is a letter or digit, such as pr_demo'"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="projectId is immutable: make another Credential for another project"
	ProjectID string `json:"projectId" yaml:"projectId"`

	// environment is the environment whose endpoints may use it, such as prod.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[^\x00]+$`
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 256",message="environment has 1 to 256 bytes of UTF-8"
	Environment string `json:"environment" yaml:"environment"`

	// id is the id in placeholders such as {{ cred_stripe }}: cred_ and 1 to 64 letters, digits, _ or -. It must be
	// unique among the namespace's Credentials of the same project and environment. Of two with the same id, the older
	// one is in force. An endpoint uses the Credential of its own namespace. If there is none, it uses one of another
	// namespace that is granted to it.
	//
	// +required
	// +kubebuilder:validation:MaxLength=69
	// +kubebuilder:validation:XValidation:rule="self.matches('^cred_[A-Za-z0-9_-]{1,64}$')",message="id is cred_ and 1 to 64 letters, digits, _ or -",messageExpression="'id is ' + self + '; allowed: cred_ and 1 to 64 letters, digits, _ or -'"
	ID string `json:"id" yaml:"id"`

	// valueFrom refers to the value.
	//
	// +required
	ValueFrom ValueSource `json:"valueFrom" yaml:"valueFrom"`

	// destinations restrict the targets further than the endpoint does. None: no further restriction.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:XValidation:rule="!has(self.pattern) || self.pattern.contains(r'\\Q') || !self.pattern.matches(r'^((\\\\[^/]|\\[[^\\]]*\\]|[^/\\\\\\[])*://)?(\\\\[^/]|\\[[^\\]]*\\]|[^/\\\\\\[])*[.]')",message="the host in a pattern has to match no slash, or the pattern allows other hosts too: write it without . for any character, such as https://[^/]+\\.example\\.com/.*"
	Destinations []Rule `json:"destinations,omitempty" yaml:"destinations"`

	// places restrict the parts of a request that may hold the value: Header, URL, Body. None: any.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=3
	Places []Place `json:"places,omitempty" yaml:"places"`

	// headers restrict the headers that may hold the value, such as Authorization. None: any. With headers and without
	// places, no other part of a request may hold it, except those that bodyPaths names.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:Pattern=`^[!#$%&'*+.^_|~0-9A-Za-z-]+$`
	Headers []string `json:"headers,omitempty" yaml:"headers"`

	// bodyPaths restrict where in a body the value may stand: JSON pointers such as /auth/token in JSON, names of fields or
	// parts in forms. Text and XML then never receive the value. None: anywhere in a body. With bodyPaths and without
	// places, no other part of a request may hold it, except the headers that headers names.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	BodyPaths []string `json:"bodyPaths,omitempty" yaml:"bodyPaths"`

	// allowedNamespaces are further namespaces whose ProxyEndpoints may use the credential; "*" for all.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$`
	AllowedNamespaces []string `json:"allowedNamespaces,omitempty" yaml:"allowedNamespaces"`
}

// ValueSource names where the value of a credential comes from. Exactly one field is set.
//
// +kubebuilder:validation:XValidation:rule="has(self.secretKeyRef) != has(self.oauth2)",message="exactly one of secretKeyRef and oauth2 is to be set"
type ValueSource struct {
	// secretKeyRef names a key of a Secret in the same namespace. Its value is the credential's value.
	//
	// +optional
	SecretKeyRef SecretKeyRef `json:"secretKeyRef,omitzero" yaml:"secretKeyRef"`

	// oauth2 has the operator fetch an access token, which is the value, and replace the token before it expires. The
	// operator keeps the token of the Credential NAME in the Secret NAME-oauth2 of the same namespace. A folder of manifests cannot have
	// oauth2, because no operator reads it.
	//
	// +optional
	OAuth2 *OAuth2 `json:"oauth2,omitempty" yaml:"oauth2"`
}

// OAuth2Grant is the way in which a token is requested.
//
// +kubebuilder:validation:Enum=ClientCredentials;RefreshToken;JWTBearer
type OAuth2Grant string

// The grants.
const (
	// ClientCredentials sends the client's id and secret (RFC 6749, section 4.4).
	ClientCredentials OAuth2Grant = "ClientCredentials"
	// RefreshToken sends a refresh token (RFC 6749, section 6).
	RefreshToken OAuth2Grant = "RefreshToken"
	// JWTBearer sends an assertion that a private key has signed (RFC 7523, section 2.1).
	JWTBearer OAuth2Grant = "JWTBearer"
)

// ClientAuthentication is the part of a request to the token endpoint that has the client's id and secret.
//
// +kubebuilder:validation:Enum=Header;Body
type ClientAuthentication string

// The ways to authenticate a client (RFC 6749, section 2.3.1).
const (
	ClientInHeader ClientAuthentication = "Header"
	ClientInBody   ClientAuthentication = "Body"
)

// OAuth2 describes how the operator fetches an access token (RFC 6749). The operator fetches the next token when two
// thirds of the life of the current one have passed.
//
// +kubebuilder:validation:XValidation:rule="(self.grant == 'RefreshToken') == has(self.refreshTokenRef)",message="refreshTokenRef is required with grant: RefreshToken, and has no meaning with another grant"
// +kubebuilder:validation:XValidation:rule="(self.grant == 'JWTBearer') == has(self.privateKeyRef)",message="privateKeyRef is required with grant: JWTBearer, and has no meaning with another grant"
// +kubebuilder:validation:XValidation:rule="self.grant == 'JWTBearer' || !has(self.subject)",message="subject has no meaning without grant: JWTBearer"
// +kubebuilder:validation:XValidation:rule="self.grant != 'ClientCredentials' || has(self.clientSecretRef)",message="clientSecretRef is required with grant: ClientCredentials"
// +kubebuilder:validation:XValidation:rule="self.grant != 'RefreshToken' || ((!has(self.scopes) || size(self.scopes) == 0) && !has(self.audience))",message="scopes and audience have no meaning with grant: RefreshToken, because the refresh token determines them"
type OAuth2 struct {
	// tokenURL is the address of the token endpoint, over https. The same rules as for targets of the proxy restrict its
	// address: it is public, unless the operator's PROXY_ALLOWED_RANGES allow it. The operator follows no redirect.
	//
	// +required
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() == 'https' && url(self).getHost() != '' && !self.contains('#') && !self.matches('^[^/?]*//[^/?]*@')",message="tokenURL is an https URL without user and fragment, such as https://login.example.com/oauth2/token",messageExpression="'tokenURL is ' + self + '; allowed: an https URL without user and fragment, such as https://login.example.com/oauth2/token'"
	TokenURL string `json:"tokenURL" yaml:"tokenURL"`

	// grant is ClientCredentials, RefreshToken or JWTBearer.
	//
	// +required
	Grant OAuth2Grant `json:"grant" yaml:"grant"`

	// grantType is the parameter grant_type of the request, such as account_credentials, for token endpoints with a grant of
	// their own. Not set: the one of grant.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	GrantType string `json:"grantType,omitempty" yaml:"grantType"`

	// clientId is the client's id, which is not secret. With JWTBearer, it is the issuer of the assertion, such as the e-mail
	// address of a service account of Google.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	ClientID string `json:"clientId" yaml:"clientId"`

	// clientSecretRef names the client's secret. Not set, with grant RefreshToken: the client is public. Not set,
	// with JWTBearer: the assertion alone proves the client.
	//
	// +optional
	ClientSecretRef *SecretKeyRef `json:"clientSecretRef,omitempty" yaml:"clientSecretRef"`

	// clientAuthentication is where a request has the client's id and secret: Header is HTTP's basic authentication, Body is
	// a form's fields. If the token endpoint refuses Header with invalid_client, the operator tries Body once and keeps to
	// what the token endpoint takes.
	//
	// +optional
	// +kubebuilder:default=Header
	ClientAuthentication ClientAuthentication `json:"clientAuthentication,omitempty" yaml:"clientAuthentication"`

	// refreshTokenRef names the first refresh token. If an answer replaces the refresh token, the operator keeps the new one in its own
	// Secret, and uses that from then on. After a change of the first refresh token, the operator uses the changed one.
	//
	// +optional
	RefreshTokenRef *SecretKeyRef `json:"refreshTokenRef,omitempty" yaml:"refreshTokenRef"`

	// privateKeyRef names the RSA key that signs the assertion of JWTBearer, of up to 8192 bits. The Secret has the key in PEM,
	// or as the JSON file of a service account of Google.
	//
	// +optional
	PrivateKeyRef *SecretKeyRef `json:"privateKeyRef,omitempty" yaml:"privateKeyRef"`

	// subject is the user for whom JWTBearer asks, as the claim sub of the assertion. Not set: none.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Subject string `json:"subject,omitempty" yaml:"subject"`

	// parameters are further parameters of the request, such as resource or account_id. They are not secret.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(name, size(name) <= 256 && !(name in ['', 'grant_type', 'client_id', 'client_secret', 'refresh_token', 'assertion']))",message="parameters have no empty name, and none of grant_type, client_id, client_secret, refresh_token and assertion, which other fields set"
	Parameters map[string]Parameter `json:"parameters,omitempty" yaml:"parameters"`

	// scopes are the requested scopes. With JWTBearer, the assertion has them. None: those that the token endpoint chooses.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:Pattern="^[!#-\\[\\]-~]+$"
	Scopes []string `json:"scopes,omitempty" yaml:"scopes"`

	// audience is the parameter audience of the request, which some token endpoints require. Not set: none. With JWTBearer, it
	// is the audience of the assertion. Not set: tokenURL.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Audience string `json:"audience,omitempty" yaml:"audience"`

	// caBundle holds, as PEM, the only certificate authorities that the operator trusts for the token endpoint. Not set: the
	// system's.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=262144
	// +kubebuilder:validation:XValidation:rule="self == '' || self.contains('-----BEGIN CERTIFICATE-----')",message="caBundle holds at least one certificate in PEM"
	CABundle string `json:"caBundle,omitempty" yaml:"caBundle"`
}

// Parameter is the value of a parameter.
//
// +kubebuilder:validation:MaxLength=4096
type Parameter string

// SecretKeyRef names a key of a Secret in the Credential's namespace.
type SecretKeyRef struct {
	// name is the Secret's name.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name" yaml:"name"`

	// key is a key of the Secret's data. Its value has 1 to 16384 bytes. If the endpoint scrubs answers, the value
	// needs at least 8 bytes.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key" yaml:"key"`
}
