package files

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/encrypt"

	"github.com/lectern-dev/lectern/copies"
)

// bucket is the storage of a copy in a bucket of a store with the S3 API, below a prefix. A bucket has no locks.
// Instead, a conditional put replaces the manifest, and fails if another process has replaced the manifest.
type bucket struct {
	client *minio.Client
	name   string
	prefix string             // empty, or with a slash at its end
	sse    encrypt.ServerSide // of each object; nil for the bucket's default
}

// Bucket returns the copy below a prefix of a bucket in an S3 store. environ has the variables that AWS defines:
// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_PROFILE, AWS_SHARED_CREDENTIALS_FILE, AWS_REGION,
// AWS_ENDPOINT_URL_S3 and AWS_ENDPOINT_URL. Without a key and a profile, the copy uses the role of the machine or pod.
// LECTERN_S3_SSE asks the store to encrypt each object. A malformed variable and a missing profile are errors.
func Bucket(name, prefix string, environ map[string]string, o Options) (*Destination, error) {
	endpoint := cmp.Or(environ["AWS_ENDPOINT_URL_S3"], environ["AWS_ENDPOINT_URL"], "https://s3.amazonaws.com")
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" {
		return nil, fmt.Errorf("AWS_ENDPOINT_URL was given as %q; want http://HOST or https://HOST without a path: bucket and prefix are in s3://BUCKET/PREFIX, and a store that serves S3 below a path cannot have a copy", endpoint)
	}
	keys := credentials.NewIAM("")
	if id := environ["AWS_ACCESS_KEY_ID"]; id != "" {
		keys = credentials.NewStaticV4(id, environ["AWS_SECRET_ACCESS_KEY"], environ["AWS_SESSION_TOKEN"])
	} else if profile, file := environ["AWS_PROFILE"], environ["AWS_SHARED_CREDENTIALS_FILE"]; profile != "" || file != "" {
		keys = credentials.NewFileAWSCredentials(file, profile)
		found, err := keys.GetWithContext(&credentials.CredContext{})
		if err == nil && found.AccessKeyID == "" {
			err = errors.New("no aws_access_key_id")
		}
		if err != nil {
			return nil, fmt.Errorf("AWS_PROFILE was given as %q, and the shared files have no keys for it (%w); set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or correct AWS_SHARED_CREDENTIALS_FILE", profile, err)
		}
	}
	sse, err := encryption(environ["LECTERN_S3_SSE"])
	if err != nil {
		return nil, err
	}
	client, err := minio.New(u.Host, &minio.Options{Creds: keys, Secure: u.Scheme == "https", Region: environ["AWS_REGION"]})
	if err != nil {
		return nil, err
	}
	if prefix = strings.Trim(prefix, "/"); prefix != "" {
		prefix += "/"
	}
	return newDestination(o, &bucket{client, name, prefix, sse}), nil
}

// encryption returns the encryption that LECTERN_S3_SSE names, or nil for "".
func encryption(value string) (encrypt.ServerSide, error) {
	kind, key, _ := strings.Cut(strings.TrimPrefix(value, "aws:"), ":")
	switch {
	case value == "":
		return nil, nil
	case value == "AES256":
		return encrypt.NewSSE(), nil
	case kind == "kms" && strings.HasPrefix(value, "aws:"):
		return encrypt.NewSSEKMS(key, nil)
	}
	return nil, fmt.Errorf("LECTERN_S3_SSE was given as %q; allowed: AES256, aws:kms, aws:kms:KEY", value)
}

// String returns the bucket and the prefix for messages, as in "bucket s3://name/prefix/".
func (b *bucket) String() string { return fmt.Sprintf("bucket s3://%s/%s", b.name, b.prefix) }

// lock checks, with a test object, that the store refuses a write whose condition does not hold. lock also checks that
// the store lists the object, and removes all its versions. With a store that ignores conditions, two syncs would
// remove each other's files.
func (b *bucket) lock(ctx context.Context) error {
	name := probePrefix + random()
	version, err := b.replace(ctx, name, []byte("first"), "")
	if responseOf(err).StatusCode == http.StatusNotImplemented {
		return fmt.Errorf("%s takes no conditional writes (%s): use a store that supports them", b, said(responseOf(err)))
	}
	if err == nil {
		_, err = b.replace(ctx, name, []byte("second"), version)
	}
	if err != nil {
		return err
	}
	var ignored bool
	for _, wrong := range []string{"", version} {
		_, err := b.replace(ctx, name, []byte("wrong"), wrong)
		if err != nil && !errors.Is(err, errChanged) {
			return err
		}
		ignored = ignored || err == nil
	}
	objects, err := b.under(ctx, name)
	if err == nil && !slices.ContainsFunc(objects, func(o object) bool { return !o.past }) {
		err = fmt.Errorf("%s does not list an object that it has: use a store that lists objects and versions as S3 does", b)
	}
	for _, o := range objects {
		err = errors.Join(err, b.remove(ctx, o))
	}
	if ignored {
		return fmt.Errorf("%s ignores the conditions of a write (If-Match, If-None-Match), so nothing keeps two syncs apart: use a store that supports them", b)
	}
	return err
}

func (*bucket) unlock() error { return nil }

// Probe checks that the bucket can have a copy below prefix: Probe writes, lists and removes one small object. environ
// has the variables of [Bucket].
func Probe(ctx context.Context, name, prefix string, environ map[string]string) error {
	d, err := Bucket(name, prefix, environ, Options{})
	if err != nil {
		return err
	}
	return d.lock(ctx) // which keeps nothing that unlock would release
}

// list returns all objects of the copy, with all versions. list needs the permission to list versions even if the
// bucket keeps no versions, because otherwise old versions could remain unseen.
func (b *bucket) list(ctx context.Context) ([]object, error) { return b.under(ctx, "") }

// under returns the objects below the prefix whose names begin with start, with all versions if the store has
// versions.
func (b *bucket) under(ctx context.Context, start string) ([]object, error) {
	objects, err := b.versions(ctx, start, true)
	if responseOf(err).StatusCode == http.StatusNotImplemented { // the server has no versions
		objects, err = b.versions(ctx, start, false)
	}
	return objects, err
}

// versions returns the objects whose names begin with start: all versions if all is set, otherwise the newest of each.
// A past version without an id is an error, because a removal would remove the newest version instead.
func (b *bucket) versions(ctx context.Context, start string, all bool) (objects []object, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the listing after an error
	for o := range b.client.ListObjects(ctx, b.name, minio.ListObjectsOptions{Prefix: b.prefix + start, Recursive: true, WithVersions: all}) {
		if o.Err != nil {
			return nil, b.explain(o.Err)
		}
		past := all && (!o.IsLatest || o.IsDeleteMarker)
		if past && o.VersionID == "" {
			return nil, fmt.Errorf("%s lists past versions of %s without their ids, so they cannot be removed: use a store that lists versions as S3 does, or a bucket that keeps none", b, o.Key)
		}
		objects = append(objects, object{strings.TrimPrefix(o.Key, b.prefix), o.VersionID, past})
	}
	return objects, nil
}

func (b *bucket) read(ctx context.Context, name string) ([]byte, string, error) {
	object, err := b.client.GetObject(ctx, b.name, b.prefix+name, minio.GetObjectOptions{})
	if err != nil {
		return nil, "", b.explain(err)
	}
	defer object.Close()
	data, err := io.ReadAll(object)
	if responseOf(err).Code == minio.NoSuchKey {
		return nil, "", fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	if err != nil {
		return nil, "", b.explain(err)
	}
	info, err := object.Stat()
	if err != nil {
		return nil, "", b.explain(err)
	}
	return data, info.ETag, nil
}

func (b *bucket) open(ctx context.Context, name string) (part, error) {
	return b.client.GetObject(ctx, b.name, b.prefix+name, minio.GetObjectOptions{})
}

func (b *bucket) write(ctx context.Context, name string, data []byte) error {
	kind := "application/vnd.apache.parquet"
	switch {
	case name == verifiedName:
		kind = "application/json"
	case lostName.MatchString(name):
		kind = "application/x-ndjson"
	}
	_, err := b.put(ctx, name, data, minio.PutObjectOptions{ContentType: kind})
	return err
}

func (b *bucket) replace(ctx context.Context, name string, data []byte, version string) (string, error) {
	o := minio.PutObjectOptions{ContentType: "application/json"}
	if version == "" {
		o.SetMatchETagExcept("*")
	} else {
		o.SetMatchETag(version)
	}
	etag, err := b.put(ctx, name, data, o)
	if !errors.Is(err, errChanged) {
		return etag, err
	}
	// The S3 client repeats a put whose answer was lost, and then the condition fails because of its own first put.
	if found, etag, err := b.read(ctx, name); err == nil && bytes.Equal(found, data) {
		return etag, nil
	}
	return "", err
}

func (b *bucket) put(ctx context.Context, name string, data []byte, o minio.PutObjectOptions) (string, error) {
	o.DisableMultipart, o.ServerSideEncryption = true, b.sse
	info, err := b.client.PutObject(ctx, b.name, b.prefix+name, bytes.NewReader(data), int64(len(data)), o)
	return info.ETag, b.explain(err)
}

func (b *bucket) remove(ctx context.Context, o object) error {
	return b.explain(b.client.RemoveObject(ctx, b.name, b.prefix+o.name, minio.RemoveObjectOptions{VersionID: o.version}))
}

// responseOf returns the answer of the S3 store in the chain of err, or the zero value if there is none.
func responseOf(err error) minio.ErrorResponse {
	e, _ := errors.AsType[minio.ErrorResponse](err)
	return e
}

// said returns the code of an answer, and its text if there is one.
func said(e minio.ErrorResponse) string {
	return strings.TrimSuffix(e.Code+": "+e.Message, ": ")
}

// explain returns err with an explanation for the user, such as which permission is missing. explain marks temporary
// errors, and returns errChanged for a failed condition.
func (b *bucket) explain(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	e := responseOf(err)
	why := func(text string) error {
		return fmt.Errorf("%s: %s (HTTP %d, %s)", b, text, e.StatusCode, said(e))
	}
	switch {
	case e.StatusCode == http.StatusPreconditionFailed, e.Code == "ConditionalRequestConflict":
		return errChanged
	case e.Code == minio.NoSuchBucket:
		return why("there is no such bucket; create it, or correct --to")
	case e.Code == "InvalidAccessKeyId", e.Code == "SignatureDoesNotMatch", e.Code == "ExpiredToken":
		return why("the credentials are refused; check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE")
	case e.Code == minio.AccessDenied:
		return why("access is denied; a copy needs to list, read, write and delete objects and their versions (s3:ListBucket, s3:ListBucketVersions, " +
			"s3:GetObject, s3:PutObject, s3:DeleteObject, s3:DeleteObjectVersion), without an object lock, and LECTERN_S3_SSE if the bucket asks for encryption")
	case e.StatusCode >= 500, e.StatusCode == 0:
		return copies.Temporary(fmt.Errorf("%s: %w", b, err))
	}
	return fmt.Errorf("%s: %w", b, err)
}
