package selfsigned

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestBothSidesTrustIt(t *testing.T) {
	cert, err := New()
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile, err := cert.Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	client := cert.Client()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: client.RootCAs}
	s.StartTLS()
	defer s.Close()
	addr := s.Listener.Addr().String()
	dial := func(c *tls.Config) error {
		h := &http.Client{Transport: &http.Transport{TLSClientConfig: c, DisableKeepAlives: true}}
		resp, err := h.Get("https://" + addr)
		if err == nil {
			err = resp.Body.Close()
		}
		return err
	}
	if err := dial(client); err != nil {
		t.Error(err)
	}
	if err := dial(&tls.Config{}); !errors.As(err, new(x509.UnknownAuthorityError)) {
		t.Errorf("client that does not trust the certificate: error %v, want x509.UnknownAuthorityError", err)
	}
	if err := dial(&tls.Config{RootCAs: client.RootCAs}); err == nil {
		t.Error("client without a certificate: error = nil, want one")
	}
}
