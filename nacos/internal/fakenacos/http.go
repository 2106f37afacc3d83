package fakenacos

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// handler returns the v1 HTTP API.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /nacos/v1/console/server/state", func(w http.ResponseWriter, r *http.Request) {
		version := "3.1.0"
		if s.line == Legacy {
			version = "1.4.1"
		}
		fmt.Fprintf(w, `{"version":%q,"standalone_mode":"standalone"}`, version)
	})
	mux.HandleFunc("POST /nacos/v1/auth/users/login", s.login)
	mux.HandleFunc("POST /nacos/v1/ns/instance", s.guard(s.instance(s.register)))
	mux.HandleFunc("DELETE /nacos/v1/ns/instance", s.guard(s.instance(s.deregister)))
	mux.HandleFunc("GET /nacos/v1/ns/instance/list", s.guard(func(w http.ResponseWriter, r *http.Request) {
		b, err := json.Marshal(map[string]any{"hosts": s.list(r.FormValue("namespaceId") + "/" + r.FormValue("serviceName"))})
		if err != nil {
			panic(err)
		}
		w.Write(b)
	}))
	mux.HandleFunc("GET /nacos/v1/cs/configs", s.guard(func(w http.ResponseWriter, r *http.Request) {
		text, found := s.query(configKey(r))
		if !found {
			http.Error(w, "config data not exist", http.StatusNotFound)
			return
		}
		fmt.Fprint(w, text)
	}))
	mux.HandleFunc("POST /nacos/v1/cs/configs", s.guard(func(w http.ResponseWriter, r *http.Request) {
		if s.publish(configKey(r), r.FormValue("content"), "") == doneButLost {
			panic(http.ErrAbortHandler)
		}
		fmt.Fprint(w, "true")
	}))
	mux.HandleFunc("DELETE /nacos/v1/cs/configs", s.guard(func(w http.ResponseWriter, r *http.Request) {
		s.remove(configKey(r))
		fmt.Fprint(w, "true")
	}))
	return mux
}

func configKey(r *http.Request) string {
	return r.FormValue("tenant") + "/" + r.FormValue("group") + "/" + r.FormValue("dataId")
}

func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.FormValue("username") != s.faults.Username || r.FormValue("password") != s.faults.Password {
		http.Error(w, "unknown user!", http.StatusForbidden)
		return
	}
	token := newID()
	s.tokens[token] = true
	fmt.Fprintf(w, `{"accessToken":%q,"tokenTtl":18000}`, token)
}

// guard rejects requests without a valid token.
func (s *Server) guard(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		gone := s.faults.NoHTTP
		allowed := s.faults.Username == "" || s.tokens[r.FormValue("accessToken")]
		s.mu.Unlock()
		switch {
		case gone != 0:
			http.Error(w, "", gone)
		case !allowed:
			http.Error(w, "user not found!", http.StatusForbidden)
		default:
			next(w, r)
		}
	}
}

func (s *Server) instance(act func(string, Instance) bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		port, err := strconv.Atoi(r.FormValue("port"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		in := Instance{IP: r.FormValue("ip"), Port: port, ClusterName: r.FormValue("clusterName")}
		if m := r.FormValue("metadata"); m != "" {
			if err := json.Unmarshal([]byte(m), &in.Metadata); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
		}
		if !act(r.FormValue("namespaceId")+"/"+r.FormValue("serviceName"), in) {
			http.Error(w, "no leader", http.StatusInternalServerError)
			return
		}
		fmt.Fprint(w, "ok")
	}
}
