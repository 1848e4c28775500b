package httpserver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"syscall"

	"github.com/lectern-dev/lectern/shared/config"
)

// Cause is an error of a [Check] whose text /readyz shows. The text must hold no secret, and no name of a host, a user
// or a database.
type Cause string

// Error returns the text of the cause, which /readyz shows.
func (c Cause) Error() string { return string(c) }

// CauseOf returns a text about the kind of the error err of a connection to Postgres or Redis, or "" for any other kind.
// The text of a [Cause] is returned as it is. Any other text has no names and addresses, so that /readyz and a command
// may show the text to everybody.
func CauseOf(err error) string {
	if cause, ok := errors.AsType[Cause](err); ok {
		return cause.Error()
	}
	if _, ok := errors.AsType[*config.Fault](err); ok {
		return "the file of its password cannot be read, or is empty"
	}
	if answer, ok := errors.AsType[interface {
		error
		SQLState() string
	}](err); ok {
		return causeOfState(answer.SQLState())
	}
	if _, ok := errors.AsType[interface {
		error
		RedisError()
	}](err); ok {
		return "Redis refuses the user, the password or a command"
	}
	if name, ok := errors.AsType[*net.DNSError](err); ok && name.IsNotFound {
		return "the host of its URL does not exist"
	} else if ok {
		return "DNS does not answer: a NetworkPolicy may refuse it"
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return "nothing listens at the address of its URL"
	}
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, wrongHost := errors.AsType[x509.HostnameError](err)
	switch {
	case unknown:
		return "its TLS certificate is of an unknown authority, which CA_FILE can name"
	case untrusted || wrongHost:
		return "its TLS certificate is not trusted"
	}
	slow, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err)
	if errors.Is(err, context.DeadlineExceeded) || ok && slow.Timeout() {
		return "no answer in time: the address may be wrong, or a NetworkPolicy or firewall may drop what is sent"
	}
	return ""
}

// causeOfState returns a text for /readyz about what a SQLSTATE means for the service (PostgreSQL documentation,
// appendix A).
func causeOfState(code string) string {
	switch code {
	case "28P01", "28000":
		return "Postgres refuses the user or the password of its URL"
	case "3D000":
		return "Postgres has no database of the name in its URL"
	case "42501":
		return "the role of its URL lacks a right: run migrate, or use the role that it is for"
	case "42P01":
		return "the database has no schema: run migrate"
	case "53300":
		return "Postgres has no connection left (max_connections)"
	case "57P03":
		return "Postgres starts or stops"
	case "08P01":
		return "Postgres, or a pooler before it, refuses the parameters of the connection"
	}
	return "Postgres answers with SQLSTATE " + code
}
