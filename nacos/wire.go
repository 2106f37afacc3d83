package nacos

import (
	"errors"
	"fmt"
	"strings"
)

// What is sent to Nacos 2 and 3, as JSON in the SDK's payloads.

type internalRequest struct {
	Module string `json:"module"`
}

type setupRequest struct {
	Module        string            `json:"module"`
	ClientVersion string            `json:"clientVersion"`
	Tenant        string            `json:"tenant"`
	Labels        map[string]string `json:"labels"`
}

type configRequest struct {
	Module string `json:"module"`
	Tenant string `json:"tenant"`
	Group  string `json:"group"`
	DataID string `json:"dataId"`
}

type publishRequest struct {
	configRequest
	Content     string            `json:"content"`
	CasMD5      string            `json:"casMd5"`
	AdditionMap map[string]string `json:"additionMap"`
}

type serviceRequest struct {
	Module      string `json:"module"`
	Namespace   string `json:"namespace"`
	ServiceName string `json:"serviceName"`
	GroupName   string `json:"groupName"`
}

type instanceRequest struct {
	serviceRequest
	Type     string   `json:"type"`
	Instance instance `json:"instance"`
}

// instance is an entry of a service's list, in requests and in replies.
type instance struct {
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

// at reports whether both stand for the same ip:port, which is what tells
// instances of a service apart.
func (in instance) at(other instance) bool { return in.IP == other.IP && in.Port == other.Port }

// status is the part that all replies have.
type status struct {
	ResultCode int    `json:"resultCode"`
	ErrorCode  int    `json:"errorCode"`
	Message    string `json:"message"`
}

// reply is an answer of ours to a server.
type reply struct {
	ResultCode int    `json:"resultCode"`
	Success    bool   `json:"success"`
	RequestID  string `json:"requestId"`
}

type configReply struct {
	Content string `json:"content"`
}

type serviceReply struct {
	ServiceInfo struct {
		Hosts []instance `json:"hosts"`
	} `json:"serviceInfo"`
}

// Codes of servers' replies.
const (
	codeMissing      = 300 // no such config
	codeUnregistered = 301 // the connection is not, or no longer, known
	codeNoHandler    = 302 // a request this version does not know
	codeForbidden    = 403
	codeFailed       = 500
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

func isCode(err error, code int) bool {
	e, ok := errors.AsType[*ServerError](err)
	return ok && e.Code == code
}

// isCasMiss tells a failed comparison from other failures, for which servers
// have no code of its own.
func isCasMiss(message string) bool { return strings.Contains(message, "Cas publish fail") }

// unsentError says that a request certainly was not carried out.
type unsentError struct{ error }

func (e unsentError) Unwrap() error { return e.error }

func isUnsent(err error) bool {
	_, ok := errors.AsType[unsentError](err)
	return ok
}
