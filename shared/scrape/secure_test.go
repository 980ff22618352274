package scrape

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
)

// authority signs certificates of a test.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

var serial int64

// sign makes a certificate; without an authority one that signs others.
func sign(t *testing.T, by *authority, name string, usage x509.ExtKeyUsage, until time.Time) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial++
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name}, NotBefore: until.Add(-48 * time.Hour), NotAfter: until,
		ExtKeyUsage: []x509.ExtKeyUsage{usage}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	parent, signer := template, key
	if by != nil {
		parent, signer = by.certificate, by.key
	} else {
		template.IsCA, template.BasicConstraintsValid, template.ExtKeyUsage = true, true, nil
		template.KeyUsage = x509.KeyUsageCertSign
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{made, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

func (a *authority) keyPEM(t *testing.T) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(a.key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// wardrobe is a folder with the files of a listener.
type wardrobe struct {
	*testing.T

	Config
	site *authority // that signs for the listener
}

func newWardrobe(t *testing.T) *wardrobe {
	t.Helper()
	folder := t.TempDir()
	w := &wardrobe{T: t, site: sign(t, nil, "site", 0, tomorrow())}
	w.CertificateFile, w.KeyFile = filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	w.dress(sign(t, w.site, "listener", x509.ExtKeyUsageServerAuth, tomorrow()))
	return w
}

func tomorrow() time.Time { return time.Now().Add(24 * time.Hour) }

func (w *wardrobe) write(path string, text []byte) {
	w.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		w.Fatal(err)
	}
}

func (w *wardrobe) dress(as *authority) {
	w.Helper()
	w.write(w.CertificateFile, as.pem)
	w.write(w.KeyFile, as.keyPEM(w.T))
}

// serves runs the listener until the test ends, and gives its address and its log.
func (w *wardrobe) serves() (address string, log *logged) {
	w.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.Fatal(err)
	}
	address = free.Addr().String()
	if err := free.Close(); err != nil {
		w.Fatal(err)
	}
	log = &logged{}
	w.Listen = address
	s := server(w.Config)
	s.Log = hclog.New(&hclog.LoggerOptions{Output: log})
	ctx, stop := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() { s.Run(ctx) })
	w.Cleanup(func() {
		stop()
		ended.Wait()
	})
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
			return address, log
		}
		if time.Now().After(end) {
			w.Fatalf("it does not listen: %v\n%s", err, log)
		}
	}
}

// logged is a log that may be read meanwhile.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// reads reads the figures as a client of TLS that trusts an authority, and shows a certificate and a token if there are any.
func (w *wardrobe) reads(
	address string, trusted, own *authority, token string,
) (code int, body string, shown *x509.Certificate, err error) {
	w.Helper()
	settings := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	settings.RootCAs.AddCert(trusted.certificate)
	if own != nil {
		pair := tls.Certificate{Certificate: [][]byte{own.certificate.Raw}, PrivateKey: own.key}
		settings.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: settings}}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(w.Context(), http.MethodGet, "https://"+address+"/metrics", nil)
	if err != nil {
		w.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := client.Do(request)
	if err != nil {
		return 0, "", nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text), answer.TLS.PeerCertificates[0], err
}

// A reader that trusts the authority reads by TLS, nobody reads in the clear, and a renewed certificate counts without a restart. Files
// that are broken in between leave the certificate from before.
func TestFiguresAreReadByTLS(t *testing.T) {
	w := newWardrobe(t)
	address, log := w.serves()
	code, body, _, err := w.reads(address, w.site, nil, "")
	if err != nil || code != http.StatusOK || !strings.Contains(body, "berth_things") {
		t.Errorf("by TLS: %d, %v\n%s", code, err, body)
	}
	if _, _, _, err := w.reads(address, sign(t, nil, "other", 0, tomorrow()), nil, ""); !errors.As(err, new(x509.UnknownAuthorityError)) {
		t.Errorf("a reader that trusts another authority: %v", err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	plain, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(plain.Body)
	_ = plain.Body.Close()
	if plain.StatusCode != http.StatusBadRequest || strings.Contains(string(text), "berth_") {
		t.Errorf("in the clear: %d\n%s", plain.StatusCode, text)
	}
	renewed := sign(t, w.site, "renewed", x509.ExtKeyUsageServerAuth, tomorrow())
	w.dress(renewed)
	for _, damage := range []bool{false, true} {
		if damage {
			w.write(w.CertificateFile, []byte("half a file"))
		}
		_, _, shown, err := w.reads(address, w.site, nil, "")
		if err != nil || !shown.Equal(renewed.certificate) {
			t.Errorf("after a renewal, damaged %t: %v, %v", damage, shown, err)
		}
	}
	if !strings.Contains(log.String(), "the certificate from before is shown") || !strings.Contains(log.String(), w.CertificateFile) {
		t.Errorf("the log says %s", log)
	}
}

// Readers show a certificate that is signed for clients, or the token if there is one. Who shows a wrong one is told why.
func TestReadersShowCertificates(t *testing.T) {
	const token = "a-token"
	readers, other := sign(t, nil, "readers", 0, tomorrow()), sign(t, nil, "others", 0, tomorrow())
	good := sign(t, readers, "prometheus", x509.ExtKeyUsageClientAuth, tomorrow())
	for _, withToken := range []bool{false, true} {
		w := newWardrobe(t)
		folder := filepath.Dir(w.KeyFile)
		w.ClientCAFile = filepath.Join(folder, "readers.pem")
		w.write(w.ClientCAFile, readers.pem)
		if withToken {
			w.TokenFile = filepath.Join(folder, "token")
			w.write(w.TokenFile, []byte(token+"\n"))
		}
		address, log := w.serves()
		tokenCode, without := http.StatusUnauthorized, "show a certificate"
		if withToken {
			tokenCode, without = http.StatusOK, "send the token"
		}
		for what, c := range map[string]struct {
			own   *authority
			token string
			code  int
			says  string
		}{
			"a good certificate":          {good, "", http.StatusOK, "berth_things"},
			"a good one and a wrong word": {good, "wrong", http.StatusOK, "berth_things"},
			"nothing":                     {nil, "", http.StatusUnauthorized, without},
			"the token":                   {nil, token, tokenCode, ""},
			"a stranger's certificate": {
				sign(t, other, "stranger", x509.ExtKeyUsageClientAuth, tomorrow()), "", http.StatusUnauthorized,
				`that of "CN=stranger"`,
			},
			"one that has ended": {
				sign(t, readers, "old", x509.ExtKeyUsageClientAuth, time.Now().Add(-time.Hour)), "", http.StatusUnauthorized, "has expired",
			},
			"one for servers": {
				sign(t, readers, "server", x509.ExtKeyUsageServerAuth, tomorrow()), "", http.StatusUnauthorized, "signed for clients",
			},
		} {
			code, body, _, err := w.reads(address, w.site, c.own, c.token)
			if err != nil || code != c.code || !strings.Contains(body, c.says) {
				t.Errorf("with a token %t, %s: %d, %v, want %d and %q\n%s", withToken, what, code, err, c.code, c.says, body)
			}
		}
		if !strings.Contains(log.String(), "a reader of figures is refused") {
			t.Errorf("the log says %s", log)
		}
		w.write(w.ClientCAFile, other.pem)
		if code, _, _, err := w.reads(address, w.site, good, ""); err != nil || code != http.StatusUnauthorized {
			t.Errorf("of an authority that was taken away: %d, %v", code, err)
		}
		w.write(w.ClientCAFile, nil)
		if code, _, _, err := w.reads(address, w.site, good, ""); err != nil || code != http.StatusServiceUnavailable {
			t.Errorf("without authorities: %d, %v", code, err)
		}
	}
}

// Files that cannot be used serve nothing, in the clear least of all, and the log names the key and the file.
func TestAListenerWithoutItsCertificateServesNothing(t *testing.T) {
	for what, c := range map[string]struct {
		damage func(*wardrobe)
		says   string
	}{
		"no certificate": {func(w *wardrobe) { _ = os.Remove(w.CertificateFile) }, "key metrics.certificate_file: open "},
		"no key":         {func(w *wardrobe) { _ = os.Remove(w.KeyFile) }, "key metrics.key_file: open "},
		"another key": {func(w *wardrobe) {
			w.write(w.KeyFile, sign(w.T, w.site, "x", x509.ExtKeyUsageServerAuth, tomorrow()).keyPEM(w.T))
		}, "are no certificate with its key"},
		"a file that is too large": {func(w *wardrobe) { w.write(w.CertificateFile, make([]byte, 1<<20+1)) }, "is larger than"},
		"no authorities": {func(w *wardrobe) {
			w.ClientCAFile = filepath.Join(w.TempDir(), "readers.pem")
			w.write(w.ClientCAFile, []byte("none"))
		}, "has no certificate in PEM form"},
	} {
		w := newWardrobe(t)
		c.damage(w)
		w.Listen = "127.0.0.1:0"
		var log bytes.Buffer
		s := server(w.Config)
		s.Log = hclog.New(&hclog.LoggerOptions{Output: &log})
		s.Run(t.Context())
		if !strings.Contains(log.String(), c.says) || !strings.Contains(log.String(), "are not served") {
			t.Errorf("%s: the log says %s", what, log.String())
		}
	}
}

func TestWhatTheConfigurationMaySayOfTLS(t *testing.T) {
	for text, want := range map[string]string{
		"c /a, k /b":               "",
		"c /a, k /b, r /c":         "",
		"c /a":                     "key metrics.key_file is missing",
		"k /a":                     "key metrics.certificate_file is missing",
		"r /c":                     "key metrics.client_ca_file asks readers for certificates, which needs TLS",
		"c a, k /b":                `key metrics.certificate_file: "a": want an absolute path`,
		"c /a, k b":                `key metrics.key_file: "b": want an absolute path`,
		"c /a, k /b, r c":          `key metrics.client_ca_file: "c": want an absolute path`,
		"l :7424, c /a, k /b":      `":7424" is reached from other machines`,
		"l :7424, c /a, k /b, r /": "",
	} {
		var c Config
		for part := range strings.SplitSeq(text, ", ") {
			key, value, _ := strings.Cut(part, " ")
			*map[string]*string{"c": &c.CertificateFile, "k": &c.KeyFile, "r": &c.ClientCAFile, "l": &c.Listen}[key] = value
		}
		err := c.Complete(PortCoordinator)
		if got := fmt.Sprint(err); (err == nil) != (want == "") || err != nil && (!errors.Is(err, ErrConfig) || !strings.Contains(got, want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
