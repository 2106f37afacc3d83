// Package api has the code that the clients of Nacos' gRPC API and HTTP API share:
// instances, errors and logins. Logins use only HTTP.
package api

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
)

// ClientVersion is the version sent to servers, which check its prefix.
const ClientVersion = "Nacos-Go-Client:v2.3.5"

// RequestTime is the timeout of one request. By default, a Keeper waits for at most 5 s.
const RequestTime = 3 * time.Second

// Instance is an entry of a service's list, in requests and in replies.
type Instance struct {
	InstanceID  string            `json:"instanceId,omitempty"`
	IP          string            `json:"ip"`
	Port        int               `json:"port"`
	Weight      float64           `json:"weight"`
	Healthy     bool              `json:"healthy"`
	Enabled     bool              `json:"enabled"`
	Ephemeral   bool              `json:"ephemeral"`
	ClusterName string            `json:"clusterName"`
	Metadata    map[string]string `json:"metadata"`
}

// SameAddress reports whether both instances have the same ip:port, which identifies an
// instance of a service.
func (in Instance) SameAddress(other Instance) bool {
	return in.IP == other.IP && in.Port == other.Port
}

// WithMetadata returns a copy of the instance with more metadata.
func (in Instance) WithMetadata(more map[string]string) Instance {
	m := make(map[string]string, len(in.Metadata)+len(more))
	maps.Copy(m, in.Metadata)
	maps.Copy(m, more)
	in.Metadata = m
	return in
}

// Codes of servers' replies.
const (
	Missing      = 300 // no such config
	Unregistered = 301 // the connection is not registered, or no longer
	NoHandler    = 302 // a request that this version does not support
	Forbidden    = 403
	Failed       = 500
)

// ServerError is a server's refusal of a request.
type ServerError struct {
	Request string // type of the request
	Code    int    // Nacos' error code, or an HTTP status
	Message string // the server's message
}

func (e *ServerError) Error() string {
	return fmt.Sprintf("%s was refused: %d %s", e.Request, e.Code, e.Message)
}

// IsCASMismatch reports whether err is the failed comparison of a compare-and-set. Servers have no
// separate code for it.
func IsCASMismatch(err error) bool { return strings.Contains(err.Error(), "Cas publish fail") }

// HasCode reports whether err is a ServerError with that code.
func HasCode(err error, code int) bool {
	e, ok := errors.AsType[*ServerError](err)
	return ok && e.Code == code
}

// LoginError is returned if a server refuses the user, or requires a user and
// none is configured. It is the cause of a worker.UnusableError.
type LoginError struct {
	Server  string
	User    string // "" if none is configured
	Message string // the server's message
}

func (e *LoginError) Error() string {
	if e.User == "" {
		return fmt.Sprintf("leafsql: Nacos at %s requires a login: %s; set leafNacosUsername and leafNacosPassword", e.Server, e.Message)
	}
	return fmt.Sprintf("leafsql: Nacos at %s denies access to user %q: %s; check leafNacosUsername, leafNacosPassword and the user's rights on the namespace", e.Server, e.User, e.Message)
}

// DeniedError returns the *worker.UnusableError for a server that refused a login with a
// message. It wraps a *LoginError. user is "" if none is configured.
func DeniedError(server, user, message string) error {
	return &worker.UnusableError{Err: &LoginError{Server: server, User: user, Message: message}}
}

// NewerHint is the hint for servers that are too old.
const NewerHint = "; use Nacos 2.3 or later, or another source of worker ids for all processes"

// UnusableError returns the *worker.UnusableError for servers that cannot be a registry
// of worker ids. The reason must end with a hint.
func UnusableError(servers, reason string) error {
	return &worker.UnusableError{Err: fmt.Errorf("leafsql: Nacos at %s can't hold worker ids: %s", servers, reason)}
}

// UnsentError wraps the error of a request that was certainly not executed.
type UnsentError struct{ Err error }

func (e UnsentError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e UnsentError) Unwrap() error { return e.Err }

// IsUnsent reports whether a request was certainly not executed.
func IsUnsent(err error) bool {
	_, ok := errors.AsType[UnsentError](err)
	return ok
}
