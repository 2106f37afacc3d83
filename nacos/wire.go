package nacos

import "github.com/leafsql/leafsql/nacos/internal/api"

// The requests and replies of Nacos 2 and 3, as JSON in the SDK's payloads.

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
	Type     string       `json:"type"`
	Instance api.Instance `json:"instance"`
}

// status is the common part of all replies.
type status struct {
	ResultCode int    `json:"resultCode"`
	ErrorCode  int    `json:"errorCode"`
	Message    string `json:"message"`
}

// reply is our answer to a request of a server.
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
		Hosts []api.Instance `json:"hosts"`
	} `json:"serviceInfo"`
}
