// Package api is what the gRPC and the HTTP side of Nacos have in common:
// instances, errors, and logins, which are HTTP's alone.
package api

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
)

// ClientVersion is what servers are told; they look at the prefix.
const ClientVersion = "Nacos-Go-Client:v2.3.5"

// RequestTime bounds one request. A lease does not wait for longer than 5 s.
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

// At reports whether both stand for the same ip:port, which is what tells
// instances of a service apart.
func (in Instance) At(other Instance) bool { return in.IP == other.IP && in.Port == other.Port }

// With gives the instance with more metadata.
func (in Instance) With(more map[string]string) Instance {
	m := make(map[string]string, len(in.Metadata)+len(more))
	maps.Copy(m, in.Metadata)
	maps.Copy(m, more)
	in.Metadata = m
	return in
}

// Codes of servers' replies.
const (
	Missing      = 300 // no such config
	Unregistered = 301 // the connection is not, or no longer, known
	NoHandler    = 302 // a request this version does not know
	Forbidden    = 403
	Failed       = 500
)

// ServerError is a server's refusal of a request.
type ServerError struct {
	Request string // its type
	Code    int    // Nacos' error code, or an HTTP status
	Message string // what the server said
}

func (e *ServerError) Error() string {
	return fmt.Sprintf("%s was refused: %d %s", e.Request, e.Code, e.Message)
}

// CasMissed tells a failed comparison from other failures, for which servers
// have no code of its own.
func CasMissed(err error) bool { return strings.Contains(err.Error(), "Cas publish fail") }

// IsCode reports whether a server refused with a code.
func IsCode(err error, code int) bool {
	e, ok := errors.AsType[*ServerError](err)
	return ok && e.Code == code
}

// LoginError says that a server does not let the user in, or lets nobody in
// without one. It is the cause of a worker.UnusableError.
type LoginError struct {
	Server  string
	User    string // "": none was given
	Message string // what the server said
}

func (e *LoginError) Error() string {
	if e.User == "" {
		return fmt.Sprintf("leafsql: Nacos at %s wants a user: %s; set leafNacosUsername and leafNacosPassword", e.Server, e.Message)
	}
	return fmt.Sprintf("leafsql: Nacos at %s does not let user %q in: %s; check leafNacosUsername, leafNacosPassword and the user's rights on the namespace", e.Server, e.User, e.Message)
}

// Denied is the error of a server that answered a login with a message; user is
// "" where none was given.
func Denied(server, user, message string) error {
	return &worker.UnusableError{Err: &LoginError{Server: server, User: user, Message: message}}
}

// Newer is the way out for servers that are too old.
const Newer = "; use Nacos 2.3 or later, or another source of worker ids for all processes"

// Unusable is the error of servers that can't be a registry of worker ids; the
// reason ends with the way out.
func Unusable(servers, reason string) error {
	return &worker.UnusableError{Err: fmt.Errorf("leafsql: Nacos at %s can't hold worker ids: %s", servers, reason)}
}

// Unsent says that a request certainly was not carried out.
type Unsent struct{ Err error }

func (e Unsent) Error() string { return e.Err.Error() }
func (e Unsent) Unwrap() error { return e.Err }

// IsUnsent reports whether a request certainly was not carried out.
func IsUnsent(err error) bool {
	_, ok := errors.AsType[Unsent](err)
	return ok
}
