package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/lectern-dev/lectern/cli/internal/replicate"
)

// bucket is a prefix of a bucket that speaks S3. It has no locks: the manifest is replaced by a conditional put, which
// fails when another process has replaced it.
type bucket struct {
	client *minio.Client
	name   string
	prefix string // empty, or with a slash at its end
}

// Bucket returns the copy below a prefix of a bucket. The variables of environ are those that AWS defines:
// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION and AWS_ENDPOINT_URL. Without a key, the
// credentials are those of the machine's or pod's role.
func Bucket(name, prefix string, environ map[string]string, o Options) (*Destination, error) {
	endpoint := environ["AWS_ENDPOINT_URL"]
	if endpoint == "" {
		endpoint = "https://s3.amazonaws.com"
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" {
		return nil, fmt.Errorf("AWS_ENDPOINT_URL was given as %q; want http://HOST or https://HOST", endpoint)
	}
	keys := credentials.NewIAM("")
	if id := environ["AWS_ACCESS_KEY_ID"]; id != "" {
		keys = credentials.NewStaticV4(id, environ["AWS_SECRET_ACCESS_KEY"], environ["AWS_SESSION_TOKEN"])
	}
	client, err := minio.New(u.Host, &minio.Options{Creds: keys, Secure: u.Scheme == "https", Region: environ["AWS_REGION"]})
	if err != nil {
		return nil, err
	}
	if prefix = strings.Trim(prefix, "/"); prefix != "" {
		prefix += "/"
	}
	return newDestination(o, &bucket{client, name, prefix}), nil
}

// String names the prefix.
func (b *bucket) String() string { return fmt.Sprintf("bucket s3://%s/%s", b.name, b.prefix) }

func (*bucket) lock() error   { return nil }
func (*bucket) unlock() error { return nil }

// list needs the permission to list versions also where a bucket keeps none: only so is it certain that none is left.
func (b *bucket) list(ctx context.Context) ([]object, error) {
	objects, err := b.versions(ctx, true)
	if minio.ToErrorResponse(err).StatusCode == http.StatusNotImplemented { // the server has no versions
		objects, err = b.versions(ctx, false)
	}
	return objects, b.explain(err)
}

// versions lists all versions, or the newest of each object.
func (b *bucket) versions(ctx context.Context, all bool) (objects []object, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the listing where it is given up
	for o := range b.client.ListObjects(ctx, b.name, minio.ListObjectsOptions{Prefix: b.prefix, Recursive: true, WithVersions: all}) {
		if o.Err != nil {
			return nil, o.Err
		}
		objects = append(objects, object{strings.TrimPrefix(o.Key, b.prefix), o.VersionID, all && (!o.IsLatest || o.IsDeleteMarker)})
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
	if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
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
	_, err := b.put(ctx, name, data, minio.PutObjectOptions{ContentType: "application/vnd.apache.parquet"})
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
	// The client repeats a put whose answer was lost, and then finds its own.
	if found, etag, err := b.read(ctx, name); err == nil && bytes.Equal(found, data) {
		return etag, nil
	}
	return "", err
}

func (b *bucket) put(ctx context.Context, name string, data []byte, o minio.PutObjectOptions) (string, error) {
	o.DisableMultipart = true
	info, err := b.client.PutObject(ctx, b.name, b.prefix+name, bytes.NewReader(data), int64(len(data)), o)
	return info.ETag, b.explain(err)
}

func (b *bucket) remove(ctx context.Context, o object) error {
	return b.explain(b.client.RemoveObject(ctx, b.name, b.prefix+o.name, minio.RemoveObjectOptions{VersionID: o.version}))
}

// explain adds the meaning of an error of S3 for the copy, and marks temporary ones.
func (b *bucket) explain(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	e := minio.ToErrorResponse(err)
	why := func(text string) error {
		return fmt.Errorf("%s: %s (%s, HTTP %d)", b, text, e.Code, e.StatusCode)
	}
	switch {
	case e.StatusCode == http.StatusPreconditionFailed, e.Code == "ConditionalRequestConflict":
		return errChanged
	case e.Code == minio.NoSuchBucket:
		return why("there is no such bucket; create it, or correct --to")
	case e.Code == "InvalidAccessKeyId", e.Code == "SignatureDoesNotMatch", e.Code == "ExpiredToken":
		return why("the credentials are refused; check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	case e.Code == minio.AccessDenied:
		return why("access is denied; a copy needs to list, read, write and delete objects and their versions (s3:ListBucket, s3:ListBucketVersions, " +
			"s3:GetObject, s3:PutObject, s3:DeleteObject, s3:DeleteObjectVersion), without an object lock")
	case e.StatusCode >= 500, e.StatusCode == 0:
		return replicate.Temporary(fmt.Errorf("%s: %w", b, err))
	}
	return fmt.Errorf("%s: %w", b, err)
}
